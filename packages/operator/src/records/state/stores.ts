/**
 * Where records keep what must outlive a process: guard state and applied plans, in a folder, or beside the manager in
 * its cluster. `seamark run` and the commands open the same ones, so a budget and a history are shared.
 */
import { join } from 'node:path'
import type { Client } from '@seamark/kube'
import { configMapPlanStore } from './config-map-plan-store.ts'
import { configMapGuardStore } from './config-map-guard-store.ts'
import { fileGuardStore, type GuardStore } from './guard-state.ts'
import { filePlanStore, type PlanStore } from './plan-store.ts'

export interface RecordsStores {
  readonly store: GuardStore
  readonly plans: PlanStore
}

/** `folder` '' is the cluster. */
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
