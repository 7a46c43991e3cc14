"""Sentences about runs and their trails in the platform's languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentplat.domain.languages import Language
from agentplat.domain.texts import set_off

RUN_SENTENCES: Mapping[Language, Mapping[str, str]] = {
    Language.EN: {
        "nobody": "somebody outside your access",
        "no_agent": "an agent outside your access",
        "no_run": "a run outside your access",
        "a_run": "run {run}",
        "nothing": "nothing",
        "unknown": "unknown",
        "queued": "queued",
        "running": "running",
        "waiting": "waiting",
        "finished": "finished",
        "failed": "failed",
        "cancelled": "cancelled",
        "run": "Run {run} of {agent}, version {version}: {state}",
        "cancel_asked": "Run {run} of {agent}, version {version}: {state}; it is cancelled before its next step",
        "opening.person": "Opened by {opener} for {agent}, version {version}",
        "opening.event": "Opened by the event {event} of {source} ({run}) for {agent}, version {version}; hop {hop}",
        "opening.other": "Opened by {run} for {agent}, version {version}; hop {hop}",
        "taken_over": "Taken over from a worker that fell silent; attempt {attempt}",
        "model_turn": "{model} answered; {tokens_read} tokens read, {tokens_written} written",
        "tool_call": "Call {call}: {tool}",
        "gate_ruling.allow": "The Gate lets call {call} through",
        "gate_ruling.needs_approval": "The Gate wants call {call} to be approved (rule {rule}): {reason}",
        "gate_ruling.block": "The Gate stops call {call} (rule {rule}): {reason}",
        "gate_ruling.duplicate": "The Gate leaves call {call} out, as it was made before (rule {rule})",
        "tool_result.done": "Call {call} is done",
        "tool_result.refused": "Call {call} is refused: {reason}",
        "tool_result.failed": "Call {call} failed: {reason}",
        "budget_reserved": "Set aside for call {call}: {amounts}",
        "budget_settled": "Call {call} took {amounts}",
        "approval_asked": "A person is asked to approve call {call}",
        "approval_given.granted": "{by} approved call {call}",
        "approval_given.refused": "{by} did not approve call {call}",
        "waiting.approval": "Waits for an approval",
        "waiting.budget": "Waits for a budget: {ceiling}",
        "resumed": "Goes on",
        "artifact_published": "Published the artifact {name}",
        "contract_accepted": "The output meets its contract",
        "contract_rejected": "The output does not meet its contract; faults: {faults}, tries left: {tries_left}",
        "closing.finished": "Finished; events published: {events}",
        "closing.hop_limit": "Finished at hop {limit}, the last of the chain of {chain}; events not published: {events}",
        "closing.chain_unknown": "Finished; the chain is unknown, and its events are not published: {events}",
        "closing.failed": "Failed: {reason}",
        "closing.cancelled": "Cancelled",
        "closing.cancelled_by": "Cancelled by {by}",
        "went_round.yes": "{text}; the chain went round {loop}, which was warned about when it was published",
        "went_round.no": "{text}; the chain went round {loop}, which nobody was warned about when it was published",
        "went_round.unknown": "{text}; the chain went round {loop}; whether that was warned about at publishing is not known",
        "dropped": "{text}; not published under a name that is built in: {dropped}",
        "intact": "The trail of run {run} is as it was written; steps: {steps}",
        "fault": "The trail of run {run} is damaged at step {number}: {fault}",
        "fault.missing": "a step is missing there",
        "fault.foreign": "it belongs to another run",
        "fault.unlinked": "it does not follow the step before it",
        "fault.opening": "an opening step is missing, or there is a second one",
        "fault.changed": "it was changed after it was written",
        "fault.after_closing": "it follows the closing step",
        "fault.cut": "the last steps are not the ones that the run knows",
        "fault.unclosed": "the run has ended without a closing step",
    },
    Language.PT: {
        "nobody": "alguém fora do seu acesso",
        "no_agent": "um agente fora do seu acesso",
        "no_run": "uma run fora do seu acesso",
        "a_run": "run {run}",
        "nothing": "nada",
        "unknown": "desconhecido",
        "queued": "na fila",
        "running": "em execução",
        "waiting": "em espera",
        "finished": "finalizada",
        "failed": "falhou",
        "cancelled": "cancelada",
        "run": "Run {run} de {agent}, versão {version}: {state}",
        "cancel_asked": "Run {run} de {agent}, versão {version}: {state}; será cancelada antes do próximo passo",
        "opening.person": "Aberta por {opener} para {agent}, versão {version}",
        "opening.event": "Aberta pelo evento {event} de {source} ({run}) para {agent}, versão {version}; salto {hop}",
        "opening.other": "Aberta por outra run ({run}) para {agent}, versão {version}; salto {hop}",
        "taken_over": "Assumida de um worker que parou de responder; tentativa {attempt}",
        "model_turn": "{model} respondeu; {tokens_read} tokens lidos, {tokens_written} escritos",
        "tool_call": "Chamada {call}: {tool}",
        "gate_ruling.allow": "O Gate deixa passar a chamada {call}",
        "gate_ruling.needs_approval": "O Gate exige aprovação da chamada {call} (regra {rule}): {reason}",
        "gate_ruling.block": "O Gate barra a chamada {call} (regra {rule}): {reason}",
        "gate_ruling.duplicate": "O Gate omite a chamada {call}, que já foi feita (regra {rule})",
        "tool_result.done": "A chamada {call} foi feita",
        "tool_result.refused": "A chamada {call} foi recusada: {reason}",
        "tool_result.failed": "A chamada {call} falhou: {reason}",
        "budget_reserved": "Reservado para a chamada {call}: {amounts}",
        "budget_settled": "A chamada {call} consumiu {amounts}",
        "approval_asked": "Pede-se a uma pessoa que aprove a chamada {call}",
        "approval_given.granted": "{by} aprovou a chamada {call}",
        "approval_given.refused": "{by} não aprovou a chamada {call}",
        "waiting.approval": "Espera uma aprovação",
        "waiting.budget": "Espera um orçamento: {ceiling}",
        "resumed": "Continua",
        "artifact_published": "Publicou o artefato {name}",
        "contract_accepted": "A saída cumpre o contrato",
        "contract_rejected": "A saída não cumpre o contrato; falhas: {faults}, tentativas restantes: {tries_left}",
        "closing.finished": "Finalizada; eventos publicados: {events}",
        "closing.hop_limit": "Finalizada no salto {limit}, o último da cadeia de {chain}; eventos não publicados: {events}",
        "closing.chain_unknown": "Finalizada; a cadeia é desconhecida, e os eventos não são publicados: {events}",
        "closing.failed": "Falhou: {reason}",
        "closing.cancelled": "Cancelada",
        "closing.cancelled_by": "Cancelada por {by}",
        "went_round.yes": "{text}; a cadeia deu a volta {loop}, da qual houve aviso na publicação",
        "went_round.no": "{text}; a cadeia deu a volta {loop}, da qual não houve aviso na publicação",
        "went_round.unknown": "{text}; a cadeia deu a volta {loop}; não se sabe se houve aviso na publicação",
        "dropped": "{text}; não publicado sob um nome embutido: {dropped}",
        "intact": "A trilha da run {run} está como foi escrita; passos: {steps}",
        "fault": "A trilha da run {run} está danificada no passo {number}: {fault}",
        "fault.missing": "falta um passo ali",
        "fault.foreign": "pertence a outra run",
        "fault.unlinked": "não segue o passo anterior",
        "fault.opening": "falta o passo de abertura, ou há um segundo",
        "fault.changed": "foi alterado depois de escrito",
        "fault.after_closing": "vem depois do passo de encerramento",
        "fault.cut": "os últimos passos não são os que a run conhece",
        "fault.unclosed": "a run terminou sem passo de encerramento",
    },
    Language.HE: {
        "nobody": "מישהו מחוץ לגישה שלכם",
        "no_agent": "סוכן מחוץ לגישה שלכם",
        "no_run": "הרצה מחוץ לגישה שלכם",
        "a_run": "הרצה {run}",
        "nothing": "אין",
        "unknown": "לא ידוע",
        "queued": "בתור",
        "running": "בביצוע",
        "waiting": "ממתינה",
        "finished": "הסתיימה",
        "failed": "נכשלה",
        "cancelled": "בוטלה",
        "run": "הרצה {run} של {agent}, גרסה {version}: {state}",
        "cancel_asked": "הרצה {run} של {agent}, גרסה {version}: {state}; היא תבוטל לפני הצעד הבא",
        "opening.person": "נפתחה על ידי {opener} עבור {agent}, גרסה {version}",
        "opening.event": "נפתחה על ידי האירוע {event} של {source} ({run}) עבור {agent}, גרסה {version}; קפיצה {hop}",
        "opening.other": "נפתחה על ידי {run} עבור {agent}, גרסה {version}; קפיצה {hop}",
        "taken_over": "הועברה מעובד שחדל להגיב; ניסיון {attempt}",
        "model_turn": "{model} השיב; {tokens_read} אסימונים נקראו, {tokens_written} נכתבו",
        "tool_call": "קריאה {call}: {tool}",
        "gate_ruling.allow": "ה־Gate מאשר את קריאה {call}",
        "gate_ruling.needs_approval": "ה־Gate דורש אישור לקריאה {call} (כלל {rule}): {reason}",
        "gate_ruling.block": "ה־Gate חוסם את קריאה {call} (כלל {rule}): {reason}",
        "gate_ruling.duplicate": "ה־Gate מדלג על קריאה {call}, שכבר בוצעה (כלל {rule})",
        "tool_result.done": "קריאה {call} בוצעה",
        "tool_result.refused": "קריאה {call} סורבה: {reason}",
        "tool_result.failed": "קריאה {call} נכשלה: {reason}",
        "budget_reserved": "הוקצה לקריאה {call}: {amounts}",
        "budget_settled": "קריאה {call} צרכה {amounts}",
        "approval_asked": "אדם מתבקש לאשר את קריאה {call}",
        "approval_given.granted": "{by} אישר את קריאה {call}",
        "approval_given.refused": "{by} לא אישר את קריאה {call}",
        "waiting.approval": "ממתינה לאישור",
        "waiting.budget": "ממתינה לתקציב: {ceiling}",
        "resumed": "ממשיכה",
        "artifact_published": "פרסמה את הארטיפקט {name}",
        "contract_accepted": "הפלט עומד בחוזה",
        "contract_rejected": "הפלט אינו עומד בחוזה; תקלות: {faults}, ניסיונות שנותרו: {tries_left}",
        "closing.finished": "הסתיימה; אירועים שפורסמו: {events}",
        "closing.hop_limit": "הסתיימה בקפיצה {limit}, האחרונה בשרשרת של {chain}; אירועים שלא פורסמו: {events}",
        "closing.chain_unknown": "הסתיימה; השרשרת אינה ידועה, והאירועים אינם מתפרסמים: {events}",
        "closing.failed": "נכשלה: {reason}",
        "closing.cancelled": "בוטלה",
        "closing.cancelled_by": "בוטלה על ידי {by}",
        "went_round.yes": "{text}; השרשרת סבבה במעגל {loop}, ועל כך ניתנה אזהרה בעת הפרסום",
        "went_round.no": "{text}; השרשרת סבבה במעגל {loop}, ולא ניתנה על כך אזהרה בעת הפרסום",
        "went_round.unknown": "{text}; השרשרת סבבה במעגל {loop}; לא ידוע אם ניתנה על כך אזהרה בעת הפרסום",
        "dropped": "{text}; לא פורסם תחת שם מובנה: {dropped}",
        "intact": "היומן של הרצה {run} הוא כפי שנכתב; צעדים: {steps}",
        "fault": "היומן של הרצה {run} פגום בצעד {number}: {fault}",
        "fault.missing": "חסר שם צעד",
        "fault.foreign": "הוא שייך להרצה אחרת",
        "fault.unlinked": "הוא אינו ממשיך את הצעד שלפניו",
        "fault.opening": "צעד הפתיחה חסר, או שיש צעד פתיחה שני",
        "fault.changed": "הוא שונה לאחר שנכתב",
        "fault.after_closing": "הוא בא אחרי צעד הסיום",
        "fault.cut": "הצעדים האחרונים אינם אלה שההרצה מכירה",
        "fault.unclosed": "ההרצה הסתיימה בלי צעד סיום",
    },
}
"""Each language by what is said. Names and numbers go in where the braces are."""


def say(what: str, language: Language, /, **values: Any) -> str:
    """A sentence. Texts that go in are set off, so that their direction does not spread."""
    shown = {name: set_off(value, language) if isinstance(value, str) else value for name, value in values.items()}
    return RUN_SENTENCES[language][what].format(**shown)


def step_text(kind: str, body: Mapping[str, Any], hidden: tuple[str, ...], language: Language) -> str:
    """A step in words. body: its JSON values as the reader may see them; hidden: the fields that were left out of it."""
    words = RUN_SENTENCES[language]
    listed = {name: ", ".join(body[name]) or words["nothing"] for name in ("published", "dropped") if name in body}
    values: dict[str, Any] = {
        "reason": "",
        "ceiling": words["unknown"],
        "hop": words["unknown"],
        "opener": words["unknown"],
        **body,
    }
    values["amounts"] = ", ".join(f"{unit} {amount}" for unit, amount in sorted(body.get("amounts", {}).items()))
    values |= {name: words["nobody"] for name in ("opener", "by") if name in hidden}
    what = f"{kind}.{found}" if (found := _variant(kind, body, hidden)) else kind
    if kind == "opening":
        delivery = body.get("delivery") or {}
        values["event"], values["source"] = delivery.get("event"), delivery.get("source_agent") or words["no_agent"]
        values["run"] = _run(body.get("source_run"), words)
    if kind == "closing":
        withheld = body.get("withheld") or {}
        events = ", ".join(withheld.get("events", ())) or listed.get("published", words["nothing"])
        values |= {"events": events, "limit": withheld.get("limit"), "chain": _run(withheld.get("chain"), words)}
    text = say(what, language, **values)
    if kind == "closing" and (loop := (body.get("withheld") or {}).get("loop")):
        path = " → ".join(name or words["no_agent"] for name in (*loop["agents"], loop["agents"][0]))
        text = words[f"went_round.{loop['warned']}"].format(text=text, loop=set_off(path, language))
    dropped = body.get("dropped")
    return words["dropped"].format(text=text, dropped=set_off(", ".join(dropped), language)) if dropped else text


def _run(run_id: int | None, words: Mapping[str, str]) -> str:
    return words["no_run"] if run_id is None else words["a_run"].format(run=run_id)


def _variant(kind: str, body: Mapping[str, Any], hidden: tuple[str, ...]) -> str | None:
    """Which of the sentences of a kind of step is meant; None where it has only one."""
    match kind:
        case "opening":
            if body["opened_by"] == "event":
                return "event"
            # A mention or a pipeline of a person's has no run that it came from.
            return "person" if body.get("opener") or "opener" in hidden else "other"
        case "gate_ruling":
            return str(body["ruling"])
        case "tool_result":
            return str(body["result"])
        case "approval_given":
            return "granted" if body["granted"] else "refused"
        case "waiting":
            return str(body["waiting_for"])
        case "closing" if body.get("withheld"):
            return str(body["withheld"]["why"])
        case "closing" if body["state"] == "cancelled" and (body.get("by") or "by" in hidden):
            return "cancelled_by"
        case "closing":
            return str(body["state"])
    return None
