/** What a wildcard needs to know about a node: may it serve, is it ready, under which addresses. */
import type { Node } from '@seamark/kube'
import type { Immutable, LabelPredicate } from '@seamark/kube/object'
import { parseAddress } from '../address.ts'
import type { WildcardOptions } from './options.ts'

export interface NodeFact {
  readonly name: string
  readonly isReady: boolean
  readonly v4: readonly string[]
  readonly v6: readonly string[]
}

const EXCLUDE_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers'

/** Undefined when the node must not serve: being deleted, not selected, excluded or cordoned, without an address. */
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
