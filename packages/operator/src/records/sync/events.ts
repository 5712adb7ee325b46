/**
 * The Events of records: about a DNSEndpoint where there is one, else about the manager's configuration object, because a
 * zone has no object of its own.
 */
import type { Context } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { REASONS } from '../../reasons.ts'
import { CONFIGURATION_OBJECT } from '../../process/switches.ts'
import type { Unread } from '../engine.ts'
import { heldMessage } from '../plan/held-set.ts'
import { releaseNotice } from '../../safety/annotated-approvals.ts'
import type { ApprovalReport } from '../../safety/approve.ts'
import type { BreakerChange } from './breaker-change.ts'
import type { Held } from './held-changes.ts'
import type { Endpoint } from './sources/source-index.ts'

/** Where a pass reports what users should see. */
export interface SyncReports {
  /** Called once per set and code that changed; `object` is undefined when the source is gone. */
  held(held: Held, object: Endpoint | undefined): void
  /** `holder` has the name that `object` requests, too. */
  shared(held: Held, object: Endpoint, holder: Endpoint): void
  /** A zone that cannot be read, once per code. */
  unread(unread: Unread): void
  breaker(change: BreakerChange): void
  /** The deprecated annotation approved what is held. */
  released(report: ApprovalReport): void
}

export type EventContext = Pick<Context, 'event'>

/** The object is undefined when the source is gone: there is nothing that an Event could be about. */
export function reportHeld(context: EventContext, held: Held, object: Endpoint | undefined): void {
  if (object === undefined) return
  const { name, type, code } = held
  context.event(
    endpointReference(object),
    'Warning',
    code,
    `${name} ${type}: ${REASONS[code]}: ${heldMessage(held)}`,
    'PlanRecords',
  )
}

export function reportShared(context: EventContext, { name, type }: Held, object: Endpoint, holder: Endpoint): void {
  const message = `DNSEndpoint ${keyOf(object)} names ${name} ${type}, too; it belongs to this object, which is older`
  context.event(endpointReference(holder), 'Warning', 'HostShared', message, 'PlanRecords')
}

export function reportReleased(context: EventContext, namespace: string, report: ApprovalReport): void {
  const { reason, severity, message } = releaseNotice(report, { where: '', form: 'seamark.io/approve-held: ID' })
  context.event(configurationObject(namespace), severity, reason, message, 'ApproveHeldChanges')
}

export function reportBreaker(context: EventContext, namespace: string, change: BreakerChange): void {
  const { provider, zone, code, why, changes, state } = change
  const isOpen = state !== 'closed'
  const note = isOpen
    ? `zone ${zone} of ${provider}: ${changes} changes are held: ${why}`
    : `zone ${zone} of ${provider}: the breaker is closed again; nothing is held by it`
  const [type, action] = isOpen ? (['Warning', 'OpenBreaker'] as const) : (['Normal', 'CloseBreaker'] as const)
  context.event(configurationObject(namespace), type, code, note, action)
}

export function reportUnread(context: EventContext, namespace: string, { provider, zone, code, why }: Unread): void {
  const note = `zone ${zone} of ${provider}: ${REASONS[code]}: ${why}`
  context.event(configurationObject(namespace), 'Warning', code, note, 'ReadZone')
}

function endpointReference({ metadata }: Endpoint): Parameters<EventContext['event']>[0] {
  return { apiVersion: 'externaldns.k8s.io/v1alpha1', kind: 'DNSEndpoint', metadata }
}

function configurationObject(namespace: string): Parameters<EventContext['event']>[0] {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: CONFIGURATION_OBJECT, namespace } }
}
