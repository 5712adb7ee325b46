/**
 * The kill switch: `seamark.io/pause: "true"` on the manager's configuration object, or `--pause`. While it is on, nothing
 * is written, neither to DNS nor to Kubernetes. The annotation is stored in the object, so it survives a restart.
 */
export interface KillSwitch {
  readonly isPaused: boolean
  /** Called whenever `isPaused` changes; returns the unsubscribe function. */
  subscribe(listener: (isPaused: boolean) => void): () => void
}

export interface KillSwitchControl extends KillSwitch {
  /** Each reason to pause is independent (the flag, the annotation). Writing resumes when all are removed. */
  set(by: string, isPaused: boolean): void
  /** The reasons that are set. */
  readonly by: readonly string[]
}

const PAUSE_ANNOTATION = 'seamark.io/pause'

export function createKillSwitch(...by: string[]): KillSwitchControl {
  const reasons = new Set(by)
  const listeners = new Set<(isPaused: boolean) => void>()
  return {
    get isPaused() {
      return reasons.size > 0
    },
    get by() {
      return [...reasons]
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    set(name, isPaused) {
      const before = reasons.size > 0
      if (isPaused) reasons.add(name)
      else reasons.delete(name)
      const after = reasons.size > 0
      if (before !== after) for (const listener of listeners) listener(after)
    },
  }
}

/** Any value but "false" pauses: a typo must not leave writing enabled. */
export function isPausedBy(annotations: Readonly<Record<string, string>> | undefined): boolean {
  const value = annotations?.[PAUSE_ANNOTATION]
  return value !== undefined && value !== 'false'
}

/** Also paused until `ready` resolves. Its listeners are not called any more when `ended` aborts. */
export function pausedUntil(killSwitch: KillSwitch, ready: Promise<void>, ended?: AbortSignal): KillSwitch {
  const listeners = new Set<(isPaused: boolean) => void>()
  let isReady = false
  void ready.then(() => {
    isReady = true
    if (!killSwitch.isPaused) for (const listener of listeners) listener(false)
  })
  const unsubscribe = killSwitch.subscribe((isPaused) => {
    if (isReady) for (const listener of listeners) listener(isPaused)
  })
  ended?.addEventListener('abort', unsubscribe, { once: true })
  return {
    get isPaused() {
      return killSwitch.isPaused || !isReady
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Also paused while `mayWrite` returns false. */
export function pausedUnless(killSwitch: KillSwitch, mayWrite: () => boolean): KillSwitch {
  return {
    get isPaused() {
      return killSwitch.isPaused || !mayWrite()
    },
    subscribe: (listener) => killSwitch.subscribe(listener),
  }
}
