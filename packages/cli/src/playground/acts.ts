/**
 * The three parts of the playground: a host becomes reachable; three failures each leave it reachable; commands to try next.
 * Every printed figure is measured during the run.
 */
import { join } from 'node:path'
import { type Client, CustomResourceDefinition, Namespace, NotFound, Service, sleep, systemClock } from '@seamark/kube'
import { DNSEndpoint, HTTPProxy } from '@seamark/operator'
import { LB_ADDRESS, LOAD_BALANCER, type Stage, ZONE } from './stage.ts'

export interface Narrator {
  heading(text: string): void
  /** A line with the time since the start. */
  say(text: string): void
}

/** In dist/ beside the bundle, and beside packages/ in a checkout. */
const EXAMPLES = [join(import.meta.dirname, '../examples'), join(import.meta.dirname, '../../../../examples')]
const ANSWER_LIMIT_MS = 30_000
const KIND_AGE_MS = 1_000
const TEAMS = 18
/** 60 % of all sources. */
const LEAVING = 13
const HOST = `shop.${ZONE}`

export class NoAnswer extends Error {}

export async function playFirstAct(stage: Stage, narrator: Narrator): Promise<void> {
  narrator.heading('Act 1: a host becomes reachable')
  const started = Date.now()
  for (const file of ['contour/load-balancer.yaml', 'contour/shop.yaml']) {
    const applied = await applyExample(stage, file)
    narrator.say(`applied examples/${file}: ${applied.join(', ')}`)
  }
  await setAddress(stage.client, [{ ip: LB_ADDRESS }])
  narrator.say(`the cloud gave the load balancer ${LB_ADDRESS}`)
  const answer = await untilAnswered(stage, HOST, started)
  narrator.say(
    `${HOST} answers ${answer.join(', ')}: HTTPProxy, DNSEndpoint, plan, record, answer in ${Date.now() - started} ms`,
  )
  const endpoint = await stage.client.find(DNSEndpoint, 'shop/shop')
  narrator.say(
    `DNSEndpoint shop/shop: ${endpoint?.spec.endpoints.map((item) => `${item.dnsName} ${item.recordType} ${item.targets.join(',')}`).join('; ')}`,
  )
  const wildcard = await untilAnswered(stage, `anything.play.${ZONE}`, started)
  narrator.say(`anything.play.${ZONE} answers ${wildcard.join(', ')}: the ready nodes of this cluster`)
}

export async function playSecondAct(stage: Stage, narrator: Narrator): Promise<void> {
  narrator.heading('Act 2: disasters that stay outside')
  await loseAddress(stage, narrator)
  await addTeams(stage, narrator)
  await readEmptyList(stage, narrator)
  await loseSources(stage, narrator)
}

/** The load balancer loses its address: published records stay. */
async function loseAddress(stage: Stage, narrator: Narrator): Promise<void> {
  await setAddress(stage.client, [])
  const proxy = await until(
    'the condition',
    async () => stage.client.find(HTTPProxy, 'shop/shop'),
    (object) => conditionOf(object) === 'NoLoadBalancerAddress',
  )
  narrator.say(`the load balancer's address was blanked: held, ${conditionOf(proxy)}; ${await answerNow(stage, HOST)}`)
  await setAddress(stage.client, [{ ip: LB_ADDRESS }])
  await until(
    'recovery',
    async () => stage.client.find(HTTPProxy, 'shop/shop'),
    (object) => conditionOf(object) === 'Published',
  )
}

async function addTeams(stage: Stage, narrator: Narrator): Promise<void> {
  await untilKindIsOlder(stage.client)
  for (let index = 1; index <= TEAMS; index++) {
    const spec = { virtualhost: { fqdn: teamHost(index) }, routes: [] }
    await stage.client.create(HTTPProxy, {
      metadata: { namespace: 'shop', name: `team-${index}`, labels: { leaving: index <= LEAVING ? 'yes' : 'no' } },
      spec: spec as NonNullable<HTTPProxy['spec']>,
    })
  }
  for (let index = 1; index <= TEAMS; index++) await untilAnswered(stage, teamHost(index), Date.now())
  narrator.say(`${TEAMS} more teams published a host each`)
}

/**
 * A record from the second in which its kind was installed may be of an earlier installation (creation times have whole
 * seconds), so its deletion is held as unconfirmed. The breaker is to be seen, so these records are written later.
 */
async function untilKindIsOlder(client: Client): Promise<void> {
  const { metadata } = await client.get(CustomResourceDefinition, `${DNSEndpoint.plural}.${DNSEndpoint.group}`)
  const ageMs = Date.now() - Date.parse(metadata.creationTimestamp ?? '')
  if (ageMs < KIND_AGE_MS) await sleep(systemClock, KIND_AGE_MS - ageMs)
}

const teamHost = (index: number): string => `team-${index}.${ZONE}`

/** The API server answers 200 with an empty list: an empty list alone never deletes a record. */
async function readEmptyList(stage: Stage, narrator: Narrator): Promise<void> {
  const { faults } = stage.server
  // A list, and a watch with initial events: both return no objects.
  const restores = [
    faults.shorten({ verb: 'list', resource: 'dnsendpoints' }, 0),
    // Without watches with initial events, clients fall back to the list.
    faults.fail({ verb: 'watch', resource: 'dnsendpoints' }, { status: 400, reason: 'BadRequest' }),
  ]
  // The watch history is discarded, so that all watches have to list again.
  const unfreeze = faults.freeze({ resource: 'dnsendpoints' })
  await stage.client.patch(Namespace, 'shop', 'merge', { metadata: { annotations: { touched: String(Date.now()) } } })
  faults.compact()
  const cut = faults.cut({ resource: 'dnsendpoints' }, 'break')
  unfreeze()
  const held = await settledCode(stage)
  narrator.say(
    `the API server answered ${cut === 1 ? 'a watch' : `${cut} watches`} with an empty list of DNSEndpoints: ${held === undefined ? 'ignored, the server was asked again' : `held, ${held}`}; ${await answerNow(stage, teamHost(1))}`,
  )
  for (const restore of restores) restore()
  faults.cut({ resource: 'dnsendpoints' }, 'break')
  // A new host resolves once every watch has recovered.
  const spec = { virtualhost: { fqdn: `back.${ZONE}` }, routes: [] }
  await stage.client.create(HTTPProxy, {
    metadata: { namespace: 'shop', name: 'back' },
    spec: spec as NonNullable<HTTPProxy['spec']>,
  })
  await untilAnswered(stage, `back.${ZONE}`, Date.now())
}

/** Most of the sources are deleted at once. */
async function loseSources(stage: Stage, narrator: Narrator): Promise<void> {
  const before = stage.refusals.length
  await stage.client.deleteCollection(HTTPProxy, { namespace: 'shop', labelSelector: 'leaving=yes' })
  const findRefusal = async () => stage.refusals.slice(before).find(({ name }) => name.startsWith('team-'))
  const { name, code } = await until('a refusal', findRefusal, () => true)
  const answer = await answerNow(stage, name.slice(0, -1))
  narrator.say(`${LEAVING} of ${TEAMS + 3} sources were deleted at once: held, ${code}; ${answer}`)
}

/** The code that records reported, within five seconds. */
async function settledCode(stage: Stage): Promise<string | undefined> {
  const before = stage.refusals.length
  const deadline = Date.now() + 5_000
  while (Date.now() < deadline) {
    const found = stage.refusals.slice(before).find(({ name }) => name.startsWith('team-'))
    if (found !== undefined) return found.code
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return undefined
}

export function describeThirdAct(stage: Stage, narrator: Narrator): void {
  const { port } = stage.dnsAddress
  narrator.heading('Act 3: your turn, in a second terminal')
  for (const line of [
    `bin/seamark dig @127.0.0.1 -p ${port} ${HOST}`,
    `bin/seamark explain ${HOST} --kubeconfig ${stage.kubeconfigPath} --config ${stage.configPath} --server 127.0.0.1:${port}`,
    `kubectl --kubeconfig ${stage.kubeconfigPath} get httpproxies,dnsendpoints -A`,
    `kubectl --kubeconfig ${stage.kubeconfigPath} -n shop patch httpproxy blog --type merge -p '{"spec":{"virtualhost":{"fqdn":"news.${ZONE}"}}}'`,
    'bin/seamark contour-plus --dry-run --service-name NAMESPACE/SERVICE      # on your own cluster: reads, writes nothing',
  ]) {
    narrator.say(line)
  }
}

/** Prints each change of a record until the signal aborts. */
export async function follow(stage: Stage, narrator: Narrator, signal: AbortSignal): Promise<void> {
  let before = recordsOf(stage)
  while (!signal.aborted) {
    await sleep(systemClock, 200, signal)
    const now = recordsOf(stage)
    for (const [key, value] of now)
      if (before.get(key) !== value) narrator.say(`${before.has(key) ? '~' : '+'} ${key} ${value}`)
    for (const key of before.keys()) if (!now.has(key)) narrator.say(`- ${key}`)
    before = now
  }
}

function recordsOf(stage: Stage): Map<string, string> {
  const records = new Map<string, string>()
  for (const zone of stage.dns.zones()) {
    for (const set of zone.sets())
      if (set.type !== 'SOA' && set.type !== 'TXT') records.set(`${set.name} ${set.type}`, set.values.join(', '))
  }
  return records
}

async function applyExample(stage: Stage, file: string): Promise<string[]> {
  const [packed = '', checkout = ''] = EXAMPLES
  return stage.applyExample(join(packed, file)).catch(async () => stage.applyExample(join(checkout, file)))
}

async function setAddress(client: Client, ingress: { ip: string }[]): Promise<void> {
  await client.patch(
    Service,
    LOAD_BALANCER,
    'merge',
    { status: { loadBalancer: { ingress } } },
    { subresource: 'status' },
  )
}

function conditionOf(proxy: HTTPProxy): string | undefined {
  return proxy.status?.conditions?.find((condition) => condition.type === 'seamark.io/Published')?.reason
}

async function answerNow(stage: Stage, host: string): Promise<string> {
  const answer = await stage.ask(host)
  return answer.length === 0 ? `${host} DOES NOT ANSWER` : `${host} still answers ${answer.join(', ')}`
}

async function untilAnswered(stage: Stage, host: string, startedMs: number): Promise<string[]> {
  while (Date.now() - startedMs < ANSWER_LIMIT_MS) {
    const answer = await stage.ask(host)
    if (answer.length > 0) return answer
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new NoAnswer(`${host} did not answer within ${ANSWER_LIMIT_MS / 1_000} s`)
}

async function until<T>(what: string, read: () => Promise<T | undefined>, isRight: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + ANSWER_LIMIT_MS
  while (Date.now() < deadline) {
    const value = await read().catch((error: unknown) => {
      if (error instanceof NotFound) return undefined
      throw error
    })
    if (value !== undefined && isRight(value)) return value
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new NoAnswer(`${what} did not come within ${ANSWER_LIMIT_MS / 1_000} s`)
}
