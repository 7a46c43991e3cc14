"""All use cases together, as the composition root builds them and the edges get them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentplat.content.port import ContentStore
from agentplat.domain.outbox import Backoff
from agentplat.loop_check import LoopCheck
from agentplat.store.port import Store
from agentplat.usecases.act_in_run import ActInRun
from agentplat.usecases.call_tool import CallTool
from agentplat.usecases.cancel_run import CancelRun
from agentplat.usecases.delegate_task import DelegateTask
from agentplat.usecases.delegate_ticket import DelegateTicket
from agentplat.usecases.deliver_outbox import DeliverOutbox
from agentplat.usecases.drive_externally import DriveExternally
from agentplat.usecases.end_session import EndSession
from agentplat.usecases.finish_run import FinishRun
from agentplat.usecases.governing import Governing, build_governing
from agentplat.usecases.identify_caller import IdentifyCaller
from agentplat.usecases.judge_call import JudgeCall
from agentplat.usecases.lease_run import LeaseRun
from agentplat.usecases.list_acts import ListActs
from agentplat.usecases.list_agents import ListAgents
from agentplat.usecases.manage_people import ManagePeople
from agentplat.usecases.manage_spaces import ManageSpaces
from agentplat.usecases.manage_tokens import ManageTokens
from agentplat.usecases.monitor_runs import MonitorRuns
from agentplat.usecases.open_run import OpenRun
from agentplat.usecases.orchestrating import Orchestrating, build_orchestrating
from agentplat.usecases.pause_agent import PauseAgent
from agentplat.usecases.preview_version import PreviewVersion
from agentplat.usecases.propose_orchestration import ProposeOrchestration
from agentplat.usecases.publish_version import PublishVersion
from agentplat.usecases.read_artifact import ReadArtifact
from agentplat.usecases.read_graph import ReadGraph
from agentplat.usecases.read_inbox import ReadInbox
from agentplat.usecases.read_report import ReadReport
from agentplat.usecases.read_runs import ReadRuns
from agentplat.usecases.resume_delivery import ResumeDelivery
from agentplat.usecases.retire_agent import RetireAgent
from agentplat.usecases.set_limits import SetLimits
from agentplat.usecases.show_chain import ShowChain
from agentplat.usecases.submit_output import SubmitOutput
from agentplat.usecases.together import Together, build_together, working_together
from agentplat.usecases.tool import AnyTool
from agentplat.usecases.verify_trail import VerifyTrail
from agentplat.usecases.watch_dispatch import WatchDispatch
from agentplat.worktrees.port import WorkTrees

LEASE_MARGIN_S = 5.0
"""How much longer than its call an entry is held, so that its outcome can be stored before anybody else takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the graph service gets, in seconds: verify_s for all of one publisher's versions, check_s for a preview or a fresh
    report, call_s for a delivery; and the waits between deliveries that failed. lease_s: how long a run stays with a silent holder.
    """

    verify_s: float
    check_s: float
    call_s: float
    backoff: Backoff
    lease_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCases:
    """What the platform does."""

    store: Store
    identify_caller: IdentifyCaller
    end_session: EndSession
    deliver_outbox: DeliverOutbox
    publish_version: PublishVersion
    preview_version: PreviewVersion
    read_report: ReadReport
    retire_agent: RetireAgent
    pause_agent: PauseAgent
    resume_delivery: ResumeDelivery
    list_agents: ListAgents
    read_graph: ReadGraph
    manage_people: ManagePeople
    manage_tokens: ManageTokens
    list_acts: ListActs
    governing: Governing
    orchestrating: Orchestrating
    watch_dispatch: WatchDispatch
    set_limits: SetLimits
    show_chain: ShowChain
    open_run: OpenRun
    read_runs: ReadRuns
    read_inbox: ReadInbox
    monitor_runs: MonitorRuns
    cancel_run: CancelRun
    verify_trail: VerifyTrail
    drive_externally: DriveExternally
    delegate_ticket: DelegateTicket
    together: Together

    def check(self) -> None:
        """Raises StoreUnavailable or SchemaOutdated where the platform cannot work just now."""
        self.store.check()


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """What the holder of a run needs, whoever it is."""

    lease: LeaseRun
    act: ActInRun
    finish: FinishRun
    cancel: CancelRun
    tidy: Callable[[], None]


def build_acting(
    store: Store,
    content: ContentStore,
    lease_s: float,
    tools: Iterable[AnyTool] = (),
    trees: WorkTrees | None = None,
) -> Acting:
    """The use cases in a run. lease_s: seconds that one is held without a sign of life. tools: beside those of the platform.

    trees: the work trees of this host, where it keeps some.
    """
    own: tuple[AnyTool, ...] = (
        ReadArtifact(store=store, content=content),
        SubmitOutput(content=content),
        DelegateTask(content=content),
        ProposeOrchestration(),
        *working_together(content),
    )
    gate = JudgeCall(tools={tool.spec.name: tool for tool in (*own, *tools)})
    return Acting(
        lease=LeaseRun(store=store, content=content, lease_s=lease_s, trees=trees),
        act=ActInRun(store=store, content=content, tools=CallTool(store=store, content=content, gate=gate)),
        finish=FinishRun(store=store, content=content),
        cancel=CancelRun(store=store),
        tidy=ManageSpaces(store=store, trees=trees).tidy_all,
    )


def build_use_cases(
    store: Store, content: ContentStore, graph: LoopCheck, patience: Patience, trees: WorkTrees | None = None
) -> UseCases:
    """All use cases on one store, one content store and one graph service. trees: the work trees of this host."""
    acting = build_acting(store, content, patience.lease_s, trees=trees)
    deliver = DeliverOutbox(
        store=store, graph=graph, backoff=patience.backoff, call_s=patience.call_s, lease_s=patience.call_s + LEASE_MARGIN_S
    )
    read_report = ReadReport(store=store, graph=graph, check_s=patience.check_s)
    publish = PublishVersion(store=store, deliver=deliver, read_report=read_report, verify_s=patience.verify_s)
    return UseCases(
        store=store,
        identify_caller=IdentifyCaller(store=store),
        end_session=EndSession(store=store),
        deliver_outbox=deliver,
        publish_version=publish,
        preview_version=PreviewVersion(store=store, graph=graph, check_s=patience.check_s),
        read_report=read_report,
        retire_agent=RetireAgent(store=store, deliver=deliver, verify_s=patience.verify_s),
        pause_agent=PauseAgent(store=store),
        resume_delivery=ResumeDelivery(store=store),
        list_agents=ListAgents(store=store),
        read_graph=ReadGraph(store=store),
        manage_people=ManagePeople(store=store),
        manage_tokens=ManageTokens(store=store),
        list_acts=ListActs(store=store),
        governing=build_governing(store, content),
        orchestrating=build_orchestrating(store, publish),
        watch_dispatch=WatchDispatch(store=store),
        set_limits=SetLimits(store=store),
        show_chain=ShowChain(store=store),
        open_run=OpenRun(store=store, content=content),
        delegate_ticket=DelegateTicket(store=store, content=content),
        read_runs=ReadRuns(store=store),
        read_inbox=ReadInbox(store=store),
        monitor_runs=MonitorRuns(store=store),
        cancel_run=acting.cancel,
        verify_trail=VerifyTrail(store=store),
        together=build_together(store, content, trees),
        drive_externally=DriveExternally(store=store, lease=acting.lease, act=acting.act, finish_run=acting.finish),
    )
