/**
 * The Event that reports the start of a pause on the manager's configuration object. A pause stops every write, and therefore
 * the recorder of Events: this one Event has names of its own, which the write gate lets pass.
 */
import { type Client, Event, microTimestamp } from '@seamark/kube'
import { PROCESS_FIELD_MANAGER } from '../field-manager.ts'
import type { Notice } from './notices.ts'
import { CONFIGURATION_OBJECT } from '../switches.ts'

const NAME_PREFIX = `${CONFIGURATION_OBJECT}.paused.`

export function isPauseEvent(path: string, namespace: string): boolean {
  return path.startsWith(`/apis/${Event.group}/v1/namespaces/${namespace}/events/${NAME_PREFIX}`)
}

export async function sendPauseEvent(
  client: Client,
  { reason, severity, message }: Notice,
  { namespace, nowMs, signal }: { readonly namespace: string; readonly nowMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const event = {
    metadata: { namespace, name: `${NAME_PREFIX}${nowMs.toString(16)}` },
    eventTime: microTimestamp(nowMs),
    reportingController: 'seamark',
    reportingInstance: 'seamark',
    action: 'Pause',
    regarding: { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: CONFIGURATION_OBJECT },
    type: severity,
    reason,
    note: message,
  }
  await client.apply(Event, event, { fieldManager: PROCESS_FIELD_MANAGER, signal })
}
