/** Lives a life in an installation of the chart: two replicas, of which the first is ended in the middle. */
import { ConfigMap, Event, Lease, Namespace } from '@seamark/kube'
import type { AuditedPlane } from '../audited-plane.ts'
import { Installation } from '../installation.ts'
import { eventually, type Life, type LifeWorld } from './life.ts'

export async function live(plane: AuditedPlane, life: Life, home: string): Promise<void> {
  const { client } = plane
  const world: LifeWorld = { client, home, space: `${home}-space`, other: `${home}-other` }
  for (const name of [home, world.space, world.other]) await client.create(Namespace, { metadata: { name } })
  await using installation = new Installation(plane, home)
  try {
    await life.prepare?.(world)
    const { config, ...values } = life.values(world)
    await installation.apply({ ...COMMON, ...values, config: merge(COMMON.config, config) })
    const start = async (): Promise<unknown> =>
      installation.start(...(life.flags?.(installation.replicas.length) ?? []))
    await start()
    await start()
    await life.start(world, installation.replicas)
    await life.change(world, start)
    await pause(world)
    const before = await holderOf(world)
    await installation.replicas[0]?.stop()
    await eventually(
      'another leader',
      async () => holderOf(world),
      (holder) => holder !== '' && holder !== before,
    )
    await life.takeOver(world, installation.replicas)
    await life.remove(world)
  } catch (error) {
    const logs = installation.replicas.map(({ log }) => log.slice(-4_000)).join('\n----\n')
    throw new Error(`${life.parts[0]}: ${String(error)}\n${logs}`, { cause: error })
  } finally {
    await life.end?.()
  }
}

/** The CRDs are those of all lives, and everything is deleted at once. */
const COMMON = {
  mode: 'enforce',
  crds: { enabled: false },
  config: {
    allowLoopback: true,
    installCRDs: false,
    publish: { enabled: false },
    records: { owner: 'life' },
    safety: { maxChanges: 1_000 },
    leaderElection: { lease: 'seamark' },
  },
}

/** Sections of a configuration, key by key. */
function merge(base: object, more: object): object {
  const sections = Object.entries(more).map(([key, value]: [string, unknown]) => {
    const below = (base as Record<string, unknown>)[key]
    return [key, isSection(below) && isSection(value) ? { ...below, ...value } : value] as const
  })
  return { ...base, ...Object.fromEntries(sections) }
}

function isSection(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The kill switch, and its end. */
async function pause({ client, home }: LifeWorld): Promise<void> {
  const annotate = async (value: string | null): Promise<unknown> =>
    client.patch(ConfigMap, `${home}/seamark`, 'merge', { metadata: { annotations: { 'seamark.io/pause': value } } })
  await annotate('true')
  await eventually(
    'an Event of the pause',
    async () => (await client.list(Event, { namespace: home })).items,
    (items) => items.some(({ reason }) => reason === 'Paused'),
  )
  await annotate(null)
}

async function holderOf({ client, home }: LifeWorld): Promise<string> {
  return (await client.find(Lease, `${home}/seamark`))?.spec?.holderIdentity ?? ''
}
