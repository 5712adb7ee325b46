/**
 * Looks at the Leases of known peers (peers.ts) before the first write of this process, and reports every holder once. Writing
 * waits for the result and continues whatever it is.
 */
import { type Manager, messageOf, untilAborted } from '@seamark/kube'
import type { Notify } from './reports/notices.ts'
import { describePeer, findPeers, type PeerReport } from './peers.ts'

export interface PeerCheck {
  /** Reads the Leases now. Never rejects. */
  readonly find: () => Promise<PeerReport>
  readonly isDone: boolean
  /** Resolves when the check is done, or when the signal aborts. */
  ready(signal: AbortSignal): Promise<void>
  /** Resolves when the check is done. */
  readonly done: Promise<void>
}

/** `own`: key of the Lease of this process. */
export function addPeerCheck(manager: Manager, own: string | undefined, notify: Notify): PeerCheck {
  let isDone = false
  let finish: () => void = () => undefined
  const done = new Promise<void>((resolve) => (finish = resolve))
  const read = async (signal: AbortSignal): Promise<PeerReport> => {
    try {
      return await findPeers(manager.client, { own, nowMs: Date.now(), signal })
    } catch (error) {
      return { peers: [], fault: messageOf(error) }
    }
  }
  manager.add(
    'peers',
    async ({ signal, log }) => {
      const { peers, fault } = await read(signal)
      if (fault !== undefined && !signal.aborted)
        log.warn(
          { error: fault },
          'Leases of other managers cannot be listed, so a second manager is noticed only by what it writes; grant list on leases.coordination.k8s.io',
        )
      for (const peer of peers)
        notify({
          reason: 'OtherManagerRunning',
          severity: 'Warning',
          message: `${describePeer(peer)}; if both write the same objects, stop one of them, or give them different ingress classes`,
        })
      isDone = true
      finish()
      await untilAborted(signal)
    },
    { leader: true },
  )
  return {
    find: async () => read(AbortSignal.timeout(FIND_TIMEOUT_MS)),
    get isDone() {
      return isDone
    },
    ready: async (signal) => await Promise.race([done, untilAborted(signal)]),
    done,
  }
}

const FIND_TIMEOUT_MS = 5_000
