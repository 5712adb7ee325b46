/** What a manager with the configuration that `seamark hub init` writes asks the hub for: fleet, balance, dns. */
import { MANAGER_PARTS, type PartName, type Right, rulesOf } from '@seamark/operator'

const PARTS = ['manager', 'fleet', 'balance', 'records', 'dns', 'installCRDs'] satisfies PartName[]

const rights: readonly Right[] = PARTS.flatMap((part): readonly Right[] => MANAGER_PARTS[part].rights)

export const HUB_RULES = rulesOf(rights, 'cluster')

/** In the namespace of the manager: its Lease, its state and zones, and the kubeconfigs of members. */
export const HOME_RULES = rulesOf(rights, 'home')
