/** ExternalDNS and contour-plus that run in the cluster: what they own, and what a switch to Seamark would change. */
import { type Client, Forbidden } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import type { ManagerConfiguration } from '@seamark/operator'
import type { Finding } from './finding.ts'

interface Container {
  image?: string
  command?: string[]
  args?: string[]
  env?: { name: string; value?: string }[]
}

interface Deployment extends Obj {
  spec?: {
    replicas?: number
    template?: { spec?: { containers?: Container[] } }
  }
}
const Deployment = kind<Deployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
})

const PROGRAMS = { 'external-dns': externalDns, 'contour-plus': contourPlus } as const

export async function checkBeside(
  client: Client,
  config: ManagerConfiguration,
  signal: AbortSignal,
): Promise<Finding[]> {
  let items: readonly Deployment[]
  try {
    ;({ items } = await client.list(Deployment, { signal }))
  } catch (error) {
    if (!(error instanceof Forbidden)) throw error
    const message =
      'ExternalDNS and contour-plus are not looked for: these credentials may not list deployments.apps; run it with those of an administrator'
    return [{ topic: 'beside', state: 'note', message }]
  }
  const found = items.flatMap((deployment) => judge(deployment, config))
  return found.length > 0
    ? found
    : [{ topic: 'beside', state: 'ok', message: 'neither ExternalDNS nor contour-plus runs in a Deployment' }]
}

/** Pure. */
export function judge(deployment: Deployment, config: ManagerConfiguration): Finding[] {
  if (deployment.spec?.replicas === 0) return []
  const where = `${deployment.metadata.namespace}/${deployment.metadata.name}`
  return (deployment.spec?.template?.spec?.containers ?? []).flatMap(
    ({ image = '', command = [], args = [], env = [] }) => {
      const program = (Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[]).find(
        (name) => image.includes(name) || [...command, ...args].some((word) => word.endsWith(`/${name}`)),
      )
      return program === undefined
        ? []
        : [PROGRAMS[program](where, new Map([...flagsOfEnv(env), ...flagsOf([...command, ...args])]), config)]
    },
  )
}

type FlagsByName = ReadonlyMap<string, readonly string[]>

/** `--name=value` and `--name value`; a switch has ''. */
function flagsOf(words: readonly string[]): FlagsByName {
  const flags = new Map<string, string[]>()
  words.forEach((word, index) => {
    const match = /^--(?<name>[a-z0-9-]+)(?:=(?<value>.*))?$/.exec(word)?.groups
    if (match?.['name'] === undefined) return
    const next = words[index + 1] ?? ''
    const value = match['value'] ?? (next.startsWith('--') ? '' : next)
    flags.set(match['name'], [...(flags.get(match['name']) ?? []), value])
  })
  return flags
}

/** Both programs read flags from the environment, too: `EXTERNAL_DNS_TXT_OWNER_ID`, `CP_SERVICE_NAME`; several values in lines. */
function flagsOfEnv(env: NonNullable<Container['env']>): FlagsByName {
  return new Map(
    env.flatMap(({ name, value = '' }) => {
      const flag = /^(?:EXTERNAL_DNS|CP)_(?<flag>[A-Z0-9_]+)$/.exec(name)?.groups?.['flag']
      const values = value.split('\n').filter((line) => line !== '')
      return flag === undefined || values.length === 0
        ? []
        : [[flag.toLowerCase().replaceAll('_', '-'), values] as const]
    }),
  )
}

function externalDns(where: string, flags: FlagsByName, { records, dns, publish }: ManagerConfiguration): Finding {
  const owner = flags.get('txt-owner-id')?.[0] ?? 'default'
  const policy = flags.get('policy')?.[0] ?? 'sync'
  const zones = flags.get('domain-filter') ?? []
  const sources = flags.get('source') ?? []
  const facts = `ExternalDNS ${where}: owner ${owner}, policy ${policy}, zones ${zones.join(', ') || 'all'}, sources ${sources.join(', ') || 'none'}`
  const writesRecords = records.enabled || dns.listen.length > 0
  if (writesRecords && owner === records.owner)
    return {
      topic: 'beside',
      state: 'fault',
      message: `${facts}; records.owner is the same, so that each would take the records of the other for its own: give Seamark another one`,
    }
  if (records.enabled && records.dnsEndpoints.enabled && sources.includes('crd'))
    return {
      topic: 'beside',
      state: 'warning',
      message: `${facts}; both would serve DNSEndpoints: take --source=crd away from it, after seamark adopt --from external-dns/${owner} --config FILE has shown what passes on, or set records.dnsEndpoints.annotationFilter`,
    }
  if (publish.enabled && !writesRecords && !sources.includes('crd'))
    return {
      topic: 'beside',
      state: 'warning',
      message: `${facts}; it does not read the DNSEndpoints that publish writes: add --source=crd to it`,
    }
  const declared = sources.filter((source) => source !== 'crd' && source !== 'node')
  return {
    topic: 'beside',
    state: 'note',
    message:
      publish.enabled && declared.length > 0
        ? `${facts}; it also publishes ${declared.join(', ')} itself: a host of both has one writer when that source is taken away from it; seamark plan --config FILE shows what changes`
        : `${facts}; records with its owner stay as they are until seamark adopt --from external-dns/${owner}`,
  }
}

function contourPlus(where: string, flags: FlagsByName, { publish, leaderElection }: ManagerConfiguration): Finding {
  const lease = flags.get('leader-election-id')?.[0] ?? 'contour-plus-leader'
  const service = flags.get('service-name')?.[0] ?? ''
  const facts = `contour-plus ${where}: Service ${service || 'not named'}, Lease ${lease}`
  return publish.enabled
    ? {
        topic: 'beside',
        state: 'warning',
        message: `${facts}; both write DNSEndpoints and Certificates of the same names${lease === leaderElection.lease ? ', one at a time where they are in one namespace' : ''}: scale it to 0 before mode enforce; seamark plan --config FILE shows what changes`,
      }
    : { topic: 'beside', state: 'note', message: `${facts}; publish is off` }
}
