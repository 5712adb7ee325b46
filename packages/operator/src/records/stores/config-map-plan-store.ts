/**
 * Applied plans in ConfigMaps in the manager's namespace, each compressed and split into parts, because an object has at
 * most 1 MiB. The newest `KEPT_PLANS` are kept.
 *
 * Labels and annotations identify a part, so that a metadata list is enough to find a plan.
 */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { type Client, ConfigMap, NotFound } from '@seamark/kube'
import { RecordsError } from '../../rrset/error.ts'
import { parsePlanFile, printPlanJson } from '../plan/plan-file.ts'
import { byNewest, KEPT_PLANS, type PlanStore, type StoredPlan } from './plan-store.ts'
import type { Plan } from '../plan/plan.ts'

const LABEL = 'seamark.io/applied-plan'
const ABOUT = 'seamark.io/plan'
const KEY = 'plan.json.gz'
/** Octets of a part before base64, which expands three to four: well below 1 MiB. */
const PART_SIZE = 700_000
const MAX_PLAIN = 256 * 1024 * 1024
/** Pruning lists all stored plans: with the first plan of a process, and then every 20 plans. */
const PRUNE_EVERY = 20

interface Part extends StoredPlan {
  readonly part: number
  readonly parts: number
}

export function configMapPlanStore(client: Client, namespace: string, kept = KEPT_PLANS): PlanStore {
  let saves = 0
  const list = async (number?: number) => {
    const labelSelector = number === undefined ? LABEL : `${LABEL}=${number}`
    const { items } = await client.list(ConfigMap, { namespace, labelSelector })
    return items.flatMap((object) => {
      const about = readAbout(object.metadata.annotations?.[ABOUT])
      return about === undefined ? [] : [{ object, about }]
    })
  }
  const drop = async (name: string): Promise<void> => {
    await client.delete(ConfigMap, `${namespace}/${name}`).catch((error: unknown) => {
      if (!(error instanceof NotFound)) throw error
    })
  }
  const prune = async (): Promise<void> => {
    const all = await list()
    const numbers = [...new Set(all.map(({ about }) => about.number))].sort((a, b) => b - a)
    const oldest = numbers[kept - 1] ?? 0
    for (const { object, about } of all) if (about.number < oldest) await drop(object.metadata.name ?? '')
  }
  return {
    async save(plan) {
      const packed = await promisify(gzip)(printPlanJson([plan]))
      const parts = Math.max(1, Math.ceil(packed.length / PART_SIZE))
      const { number, provider, zone, changes } = plan
      for (let part = 0; part < parts; part++) {
        const about: Part = { number, provider, zone, changes: changes.length, part, parts }
        await client.apply(ConfigMap, {
          metadata: {
            namespace,
            name: nameOf(plan, part),
            labels: { [LABEL]: String(number) },
            annotations: { [ABOUT]: JSON.stringify(about) },
          },
          binaryData: { [KEY]: packed.subarray(part * PART_SIZE, (part + 1) * PART_SIZE).toString('base64') },
        })
      }
      if (saves++ % PRUNE_EVERY === 0) await prune()
    },
    async remove(plan) {
      for (const { object, about } of await list(plan.number))
        if (about.provider === plan.provider && about.zone === plan.zone) await drop(object.metadata.name ?? '')
    },
    list: async () =>
      (await list())
        .filter(({ about }) => about.part === 0)
        .map(({ about: { part: _part, parts: _parts, ...stored } }) => stored)
        .sort(byNewest),
    async load(number) {
      const found = await list(number)
      const plans: Plan[] = []
      for (const { about } of found.filter((item) => item.about.part === 0)) {
        const parts = found
          .filter((item) => item.about.provider === about.provider && item.about.zone === about.zone)
          .toSorted((a, b) => a.about.part - b.about.part)
        if (parts.length !== about.parts)
          throw new RecordsError('PLAN_UNREADABLE', `plan ${number} of ${about.zone} is incomplete`)
        const packed = Buffer.concat(parts.map(({ object }) => Buffer.from(object.binaryData?.[KEY] ?? '', 'base64')))
        plans.push(...parsePlanFile((await promisify(gunzip)(packed, { maxOutputLength: MAX_PLAIN })).toString('utf8')))
      }
      return plans
    },
  }
}

function nameOf({ number, provider, zone }: Plan, part: number): string {
  const place = createHash('sha256').update(`${provider} ${zone}`).digest('hex').slice(0, 8)
  return `seamark-plan-${number}-${place}-${part}`
}

function readAbout(text: string | undefined): Part | undefined {
  try {
    const about = JSON.parse(text ?? '') as Partial<Part>
    const isWhole = [about.number, about.part, about.parts, about.changes].every((item) => typeof item === 'number')
    return isWhole && typeof about.provider === 'string' && typeof about.zone === 'string' ? (about as Part) : undefined
  } catch {
    return undefined
  }
}
