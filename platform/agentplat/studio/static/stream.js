// A stream of changes that comes back by itself, and tells when it is gone for longer.
export function follow(path, hint, changed) {
  let source, last = "", silent;

  function lost() {
    hint.textContent = hint.dataset.lost;
    hint.hidden = false;
  }

  function open() {
    source = new EventSource(path());
    source.addEventListener("open", () => { clearTimeout(silent); silent = undefined; hint.hidden = true; });
    source.addEventListener("changed", (event) => changed(event));
    source.addEventListener("error", () => {
      silent ??= setTimeout(lost, 5000);
      // Browsers try again after a lost connection; after a refusal they do not.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, 2000);
    });
  }

  open();
  return () => { source.close(); clearTimeout(silent); };
}

// One call at a time; what comes meanwhile leads to one more.
export function inTurn(work) {
  let busy = false, again = false;
  return async function run() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      do { again = false; await work(); } while (again);
    } finally { busy = false; }
  };
}
