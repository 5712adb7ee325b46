/**
 * What a wildcard uses of a node: may it serve, is it ready, under which addresses.
 *
 * `trimNode` reads what the API server of a member sent, so it takes nothing for granted: members of a wrong type are
 * dropped, and an object of any shape becomes a node that `readNode` can read.
 */
import type { Node } from '@seamark/kube'
import type { Immutable, LabelPredicate } from '@seamark/kube/object'
import { parseAddress } from '@seamark/dialects'
import { MAX_NODE_ADDRESSES } from './limits.ts'
import type { WildcardOptions } from './options.ts'

export interface NodeFact {
  readonly name: string
  readonly isReady: boolean
  readonly v4: readonly string[]
  readonly v6: readonly string[]
}

const EXCLUDE_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers'
const ADDRESS_TYPES: ReadonlySet<unknown> = new Set(['ExternalIP', 'InternalIP'])
/** Longer text is no IP address. */
const MAX_ADDRESS_LENGTH = 64

/**
 * Heartbeats change images and capacity all the time; only what a decision reads is cached, so that only its changes cause
 * reconciles. At most one address above the limit is kept: enough to see that there are too many.
 */
export function trimNode(node: Immutable<Node>): Node {
  const metadata = recordOf(node.metadata)
  const labels = Object.fromEntries(
    Object.entries(recordOf(metadata['labels'])).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  )
  const text = (key: string): Record<string, string> =>
    typeof metadata[key] === 'string' ? { [key]: metadata[key] } : {}
  const status = recordOf(node.status)
  return {
    metadata: {
      ...text('name'),
      ...text('uid'),
      ...text('resourceVersion'),
      ...text('deletionTimestamp'),
      labels,
    },
    ...(recordOf(node.spec)['unschedulable'] === true && { spec: { unschedulable: true } }),
    status: { addresses: addressesOf(status['addresses']), conditions: readyConditionsOf(status['conditions']) },
  }
}

function addressesOf(value: unknown): NonNullable<NonNullable<Node['status']>['addresses']> {
  const found: NonNullable<NonNullable<Node['status']>['addresses']> = []
  for (const item of listOf(value)) {
    const { type, address } = recordOf(item)
    if (!ADDRESS_TYPES.has(type) || typeof address !== 'string' || address.length > MAX_ADDRESS_LENGTH) continue
    found.push({ type: type as 'ExternalIP' | 'InternalIP', address })
    if (found.length > MAX_NODE_ADDRESSES) break
  }
  return found
}

function readyConditionsOf(value: unknown): NonNullable<NonNullable<Node['status']>['conditions']> {
  const ready = listOf(value)
    .map(recordOf)
    .find(({ type }) => type === 'Ready')
  if (ready === undefined) return []
  return [{ type: 'Ready', status: ready['status'] === 'True' ? 'True' : 'False' }]
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
}

/** Of a trimmed node. Undefined when it must not serve: being deleted, not selected, excluded, cordoned, without an address. */
export function readNode(
  node: Immutable<Node>,
  isSelected: LabelPredicate,
  options: Pick<WildcardOptions, 'excludeUnschedulable' | 'allowInternal'>,
): NodeFact | undefined {
  const { metadata, spec, status } = node
  const labels = metadata.labels ?? {}
  if (metadata.deletionTimestamp !== undefined || Object.hasOwn(labels, EXCLUDE_LABEL) || !isSelected(labels))
    return undefined
  if (options.excludeUnschedulable && spec?.unschedulable === true) return undefined
  const v4 = chooseAddresses(node, 4, options.allowInternal)
  const v6 = chooseAddresses(node, 6, options.allowInternal)
  if (v4.length + v6.length === 0) return undefined
  const isReady =
    status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false
  return { name: metadata.name ?? '', isReady, v4, v6 }
}

/** More addresses than one node may have: what `trimNode` kept is not all of them. */
export function hasTooManyAddresses(node: Immutable<Node>): boolean {
  return (node.status?.addresses?.length ?? 0) > MAX_NODE_ADDRESSES
}

/** Per family: the external addresses, else the internal ones. */
function chooseAddresses(node: Immutable<Node>, family: 4 | 6, allowInternal: boolean): string[] {
  for (const type of allowInternal ? ['ExternalIP', 'InternalIP'] : ['ExternalIP']) {
    const found = (node.status?.addresses ?? [])
      .filter((entry) => entry.type === type)
      .map((entry) => parseAddress(entry.address))
      .filter((parsed) => parsed?.family === family && parsed.text !== '0.0.0.0' && parsed.text !== '::')
      .map((parsed) => parsed?.text ?? '')
    if (found.length > 0) return found
  }
  return []
}
