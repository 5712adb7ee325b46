/**
 * What happens to the manager as a whole, where users look: one log line of level warn, and one Event on the manager's
 * configuration object.
 *
 * Guarantee: an Event is a write, so none is sent while writing is paused or in observe mode; the log line always is.
 */
import { type Manager, type RunnableContext, untilAborted } from '@seamark/kube'
import type { Reason } from '../../reasons.ts'
import { CONFIGURATION_OBJECT } from '../switches.ts'

export interface Notice {
  readonly reason: Reason
  readonly severity: 'Normal' | 'Warning'
  /** Names the object, the cause and what to do. */
  readonly message: string
  /** Further fields of the log line. */
  readonly fields?: Readonly<Record<string, unknown>>
}

export type Notify = (notice: Notice) => void

/** Notices that are logged already, and wait for a process that leads and may write. */
export interface NoticeQueue {
  /** Removes and returns them. */
  take(): Notice[]
  /** Called after each that is added. Returns the unsubscribe function. */
  subscribe(listener: () => void): () => void
}

const NO_NOTICES: NoticeQueue = { take: () => [], subscribe: () => () => undefined }

const EVENT_SOURCE = 'seamark'

export function createNotices(
  manager: Manager,
  {
    namespace,
    mayReport,
    queue = NO_NOTICES,
  }: { readonly namespace: string; readonly mayReport: () => boolean; readonly queue?: NoticeQueue },
): Notify {
  const about = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name: CONFIGURATION_OBJECT } }
  let send: RunnableContext['event'] | undefined
  manager.add(
    'notices',
    async (context) => {
      send = (...event) => context.event(...event)
      const drain = (): void => {
        for (const { severity, reason, message } of queue.take())
          if (mayReport()) context.event(about, severity, reason, message)
      }
      const unsubscribe = queue.subscribe(drain)
      drain()
      await untilAborted(context.signal)
      unsubscribe()
      send = undefined
    },
    { leader: true, reportingController: EVENT_SOURCE },
  )
  return ({ reason, severity, message, fields = {} }) => {
    manager.log[severity === 'Warning' ? 'warn' : 'info']({ ...fields, reason }, message)
    if (mayReport()) send?.(about, severity, reason, message)
  }
}
