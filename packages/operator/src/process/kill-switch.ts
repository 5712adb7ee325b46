/**
 * The kill switch: `seamark.io/pause: "true"` on the manager's configuration object, or `--pause`. While it is pulled
 * nothing writes, neither to DNS nor to Kubernetes. It lives in the object, so it survives a restart.
 */
export interface KillSwitch {
  readonly isPaused: boolean
  /** Called whenever `isPaused` changes; returns the unsubscribe function. */
  subscribe(listener: (isPaused: boolean) => void): () => void
}

export interface KillSwitchControl extends KillSwitch {
  /** Each reason to pause counts on its own: the flag, the annotation. All must be lifted. */
  set(by: string, isPaused: boolean): void
}

const PAUSE_ANNOTATION = 'seamark.io/pause'

export function createKillSwitch(...by: string[]): KillSwitchControl {
  const reasons = new Set(by)
  const listeners = new Set<(isPaused: boolean) => void>()
  return {
    get isPaused() {
      return reasons.size > 0
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

/** Anything but "false" and absence pauses: a typo must not leave writing on. */
export function isPausedBy(annotations: Readonly<Record<string, string>> | undefined): boolean {
  const value = annotations?.[PAUSE_ANNOTATION]
  return value !== undefined && value !== 'false'
}

/** Also paused while `mayWrite` says no, for a reason of its own. */
export function pausedUnless(killSwitch: KillSwitch, mayWrite: () => boolean): KillSwitch {
  return {
    get isPaused() {
      return killSwitch.isPaused || !mayWrite()
    },
    subscribe: (listener) => killSwitch.subscribe(listener),
  }
}
