/** What users are told about records at a provider: a record that was deleted, or a second installation with our identity. Pure. */
import { QUIET_MS, UNDO_LIMIT, UNDO_WINDOW_MS } from '../../safety/second-writer.ts'
import { type Reason, REASONS } from '../../reasons.ts'

export interface RecordNotice {
  readonly type: 'Normal' | 'Warning'
  /** Name of the provider, as it is registered. */
  readonly provider: string
  /** Key of the load balancer, if it still exists. */
  readonly loadBalancer?: string
  readonly message: string
}

export interface DeletedRecord {
  readonly provider: string
  readonly zone: string
  readonly name: string
  readonly type: string
  readonly values: readonly string[]
  readonly reason: Reason
  readonly loadBalancer?: string
}

const plain = (name: string): string => name.replace(/\.$/, '')

export function deletionNotice({ provider, name, type, values, reason, loadBalancer }: DeletedRecord): RecordNotice {
  const record = `${plain(name)} ${type} ${values.join(' ')}`
  return {
    type: 'Normal',
    provider,
    ...(loadBalancer !== undefined && { loadBalancer }),
    message: `record deleted: ${record}: ${reason}: ${REASONS[reason]}`,
  }
}

/** What to do about it: the same for both ways in which it shows. */
const ADVICE =
  'Give each installation an --identity of its own, or let only one of them serve the zone; ' +
  `writing resumes ${QUIET_MS / 60_000} min after the last change of the other one`

/** One text for as long as it lasts: another one would be a new Event. */
export function undoneMessage(name: string, provider: string, identity: string): string {
  return (
    `${UNDO_LIMIT + 1} writes of ${plain(name)} within ${UNDO_WINDOW_MS / 60_000} min were undone at provider '${provider}': ` +
    `another installation with the identity '${identity}' writes the same name. ${ADVICE}`
  )
}

export function reappearedMessage(names: readonly string[], provider: string, identity: string): string {
  const some = [...names].map(plain).sort().slice(0, 3).join(', ')
  const more = names.length > 3 ? ` and ${names.length - 3} more` : ''
  return (
    `records that were deleted are there again with the identity '${identity}', and no load balancer here has their names: ` +
    `${some}${more}. Another installation uses this identity at provider '${provider}'; they are not deleted any more. ${ADVICE}`
  )
}
