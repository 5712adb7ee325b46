/**
 * Applied plans, newest first: the history for `seamark undo NUMBER`.
 *
 * A plan is saved before its first batch is sent, so every written plan can be undone; one that wrote nothing is removed
 * again. The number of stored plans is bounded.
 */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makePrivateFolder, writePrivateFile } from '@seamark/kube/private-file'
import { RecordsError } from '../../rrset/error.ts'
import { parsePlanFile, printPlanJson } from '../plan/plan-file.ts'
import type { Plan } from '../plan/plan.ts'

export interface StoredPlan {
  readonly number: number
  readonly provider: string
  readonly zone: string
  readonly changes: number
}

export interface PlanStore {
  save(plan: Plan): Promise<void>
  remove(plan: Plan): Promise<void>
  /** Newest first. */
  list(): Promise<readonly StoredPlan[]>
  /** Plans of several zones may have the same number. Empty when there is none. */
  load(number: number): Promise<readonly Plan[]>
}

/** Maximum number of stored plans, over all zones. */
export const KEPT_PLANS = 100

export function byNewest(a: StoredPlan, b: StoredPlan): number {
  return b.number - a.number
}

/** `1800000000000_3_bind_example.com.json` */
const FILE = /^(\d+)_(\d+)_([^_]*)_([^_]*)\.json$/

/** One file per plan in `folder`. */
export function filePlanStore(folder: string, kept = KEPT_PLANS): PlanStore {
  const nameOf = ({ number, provider, zone, changes }: Plan): string =>
    `${number}_${changes.length}_${encode(provider)}_${encode(zone)}.json`
  const listFiles = async (): Promise<(StoredPlan & { file: string })[]> => {
    const names = await readdir(folder).catch((cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOENT') return []
      throw new RecordsError('STATE_UNREADABLE', `applied plans in ${folder} cannot be read`, { cause })
    })
    return names
      .flatMap((file) => {
        const [, number, changes, provider, zone] = FILE.exec(file) ?? []
        if (number === undefined || provider === undefined || zone === undefined) return []
        return [
          {
            file,
            number: Number(number),
            changes: Number(changes),
            provider: decodeURIComponent(provider),
            zone: decodeURIComponent(zone),
          },
        ]
      })
      .sort(byNewest)
  }
  return {
    async save(plan) {
      await makePrivateFolder(folder)
      await writePrivateFile(join(folder, nameOf(plan)), printPlanJson([plan]))
      for (const { file } of (await listFiles()).slice(kept)) await rm(join(folder, file), { force: true })
    },
    remove: async (plan) => rm(join(folder, nameOf(plan)), { force: true }),
    list: async () => (await listFiles()).map(({ file: _file, ...stored }) => stored),
    async load(number) {
      const files = (await listFiles()).filter((stored) => stored.number === number)
      const texts = await Promise.all(files.map(async ({ file }) => readFile(join(folder, file), 'utf8')))
      return texts.flatMap(parsePlanFile)
    },
  }
}

/** The separator is never part of an encoded name. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll('_', '%5F')
}
