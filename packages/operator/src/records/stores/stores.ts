/**
 * Persistent state of records: guard state and applied plans, in a folder or in ConfigMaps in the manager's namespace.
 * `seamark run` and the commands open the same stores, so they share budgets and history.
 */
import { join } from 'node:path'
import type { Client } from '@seamark/kube'
import { configMapPlanStore } from './config-map-plan-store.ts'
import { configMapGuardStore, fileGuardStore, type GuardStore } from '../state/guard-state.ts'
import { filePlanStore, type PlanStore } from './plan-store.ts'

export interface RecordsStores {
  readonly store: GuardStore
  readonly plans: PlanStore
}

/** An empty `folder` selects the cluster. */
export function openRecordsStores(client: Client, namespace: string, folder: string): RecordsStores {
  if (folder !== '') return openStoreFolder(folder)
  return {
    store: configMapGuardStore(client, `${namespace}/seamark-guard-state`),
    plans: configMapPlanStore(client, namespace),
  }
}

export function openStoreFolder(folder: string): RecordsStores {
  return { store: fileGuardStore(folder), plans: filePlanStore(join(folder, 'plans')) }
}
