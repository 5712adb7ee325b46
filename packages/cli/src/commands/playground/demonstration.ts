/**
 * Parts of the playground: a host becomes reachable; three failures each leave it reachable; commands to try next.
 * Every printed figure is measured during the run.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Client, CustomResourceDefinition, Namespace, NotFound, poll, Service, systemClock } from '@seamark/kube'
import { DNSEndpoint, HTTPProxy } from '@seamark/operator'
import { LB_ADDRESS, LOAD_BALANCER, type Environment, ZONE } from './environment.ts'

export interface Printer {
  heading(text: string): void
  /** A line with the time since the start. */
  line(text: string): void
}

/** In dist/ beside the bundle, and beside packages/ in a checkout. */
const EXAMPLES = [join(import.meta.dirname, '../examples'), join(import.meta.dirname, '../../../../../examples')]
const ANSWER_LIMIT_MS = 30_000
const KIND_AGE_MS = 1_000
const TEAMS = 18
/** 60 % of all sources. */
const LEAVING = 13
const HOST = `shop.${ZONE}`

export class NoAnswer extends Error {}

export async function publishHost(environment: Environment, printer: Printer): Promise<void> {
  printer.heading('Part 1: a host becomes reachable')
  const started = Date.now()
  for (const file of ['contour/load-balancer.yaml', 'contour/shop.yaml']) {
    const applied = await applyExample(environment, file)
    printer.line(`applied examples/${file}: ${applied.join(', ')}`)
  }
  await setAddress(environment.client, [{ ip: LB_ADDRESS }])
  printer.line(`the cloud gave the load balancer ${LB_ADDRESS}`)
  const answer = await untilAnswered(environment, HOST, started)
  printer.line(
    `${HOST} answers ${answer.join(', ')}: HTTPProxy, DNSEndpoint, plan, record, answer in ${Date.now() - started} ms`,
  )
  const endpoint = await environment.client.find(DNSEndpoint, 'shop/shop')
  printer.line(
    `DNSEndpoint shop/shop: ${endpoint?.spec.endpoints.map((item) => `${item.dnsName} ${item.recordType} ${item.targets.join(',')}`).join('; ')}`,
  )
  const wildcard = await untilAnswered(environment, `anything.play.${ZONE}`, started)
  printer.line(`anything.play.${ZONE} answers ${wildcard.join(', ')}: the ready nodes of this cluster`)
}

export async function simulateFailures(environment: Environment, printer: Printer): Promise<void> {
  printer.heading('Part 2: failures that leave it reachable')
  await loseAddress(environment, printer)
  await addTeams(environment, printer)
  await readEmptyList(environment, printer)
  await loseSources(environment, printer)
}

/** The load balancer loses its address: published records stay. */
async function loseAddress(environment: Environment, printer: Printer): Promise<void> {
  await setAddress(environment.client, [])
  const proxy = await until(
    'the condition',
    async () => environment.client.find(HTTPProxy, 'shop/shop'),
    (object) => conditionOf(object) === 'NoLoadBalancerAddress',
  )
  printer.line(
    `the load balancer's address was blanked: held, ${conditionOf(proxy)}; ${await answerNow(environment, HOST)}`,
  )
  await setAddress(environment.client, [{ ip: LB_ADDRESS }])
  await until(
    'recovery',
    async () => environment.client.find(HTTPProxy, 'shop/shop'),
    (object) => conditionOf(object) === 'Published',
  )
}

async function addTeams(environment: Environment, printer: Printer): Promise<void> {
  await untilKindIsOlder(environment.client)
  for (let index = 1; index <= TEAMS; index++) {
    const spec = { virtualhost: { fqdn: teamHost(index) }, routes: [] }
    await environment.client.create(HTTPProxy, {
      metadata: { namespace: 'shop', name: `team-${index}`, labels: { leaving: index <= LEAVING ? 'yes' : 'no' } },
      spec: spec as NonNullable<HTTPProxy['spec']>,
    })
  }
  for (let index = 1; index <= TEAMS; index++) await untilAnswered(environment, teamHost(index), Date.now())
  printer.line(`${TEAMS} more teams published a host each`)
}

/**
 * A record from the second in which its kind was installed may be of an earlier installation (creation times have whole
 * seconds), so its deletion is held as unconfirmed. The breaker is to be seen, so these records are written later.
 */
async function untilKindIsOlder(client: Client): Promise<void> {
  const { metadata } = await client.get(CustomResourceDefinition, `${DNSEndpoint.plural}.${DNSEndpoint.group}`)
  const isOlder = () => Date.now() - Date.parse(metadata.creationTimestamp ?? '') >= KIND_AGE_MS || undefined
  await poll(isOlder, { clock: systemClock, intervalMs: 50, timeoutMs: KIND_AGE_MS })
}

const teamHost = (index: number): string => `team-${index}.${ZONE}`

/** The API server answers 200 with an empty list: an empty list alone never deletes a record. */
async function readEmptyList(environment: Environment, printer: Printer): Promise<void> {
  const { faults } = environment.server
  // A list, and a watch with initial events: both return no objects.
  const restores = [
    faults.shorten({ verb: 'list', resource: 'dnsendpoints' }, 0),
    // Without watches with initial events, clients fall back to the list.
    faults.fail({ verb: 'watch', resource: 'dnsendpoints' }, { status: 400, reason: 'BadRequest' }),
  ]
  // The watch history is discarded, so that all watches have to list again.
  const unfreeze = faults.freeze({ resource: 'dnsendpoints' })
  await environment.client.patch(Namespace, 'shop', 'merge', {
    metadata: { annotations: { touched: String(Date.now()) } },
  })
  faults.compact()
  const cut = faults.cut({ resource: 'dnsendpoints' }, 'break')
  unfreeze()
  const held = await settledCode(environment)
  printer.line(
    `the API server answered ${cut === 1 ? 'a watch' : `${cut} watches`} with an empty list of DNSEndpoints: ${held === undefined ? 'ignored, the server was asked again' : `held, ${held}`}; ${await answerNow(environment, teamHost(1))}`,
  )
  for (const restore of restores) restore()
  faults.cut({ resource: 'dnsendpoints' }, 'break')
  // A new host resolves once every watch has recovered.
  const spec = { virtualhost: { fqdn: `back.${ZONE}` }, routes: [] }
  await environment.client.create(HTTPProxy, {
    metadata: { namespace: 'shop', name: 'back' },
    spec: spec as NonNullable<HTTPProxy['spec']>,
  })
  await untilAnswered(environment, `back.${ZONE}`, Date.now())
}

/** Most of the sources are deleted at once. */
async function loseSources(environment: Environment, printer: Printer): Promise<void> {
  const before = environment.refusals.length
  await environment.client.deleteCollection(HTTPProxy, { namespace: 'shop', labelSelector: 'leaving=yes' })
  const findRefusal = async () => environment.refusals.slice(before).find(({ name }) => name.startsWith('team-'))
  const { name, code } = await until('a refusal', findRefusal, () => true)
  const answer = await answerNow(environment, name.slice(0, -1))
  printer.line(`${LEAVING} of ${TEAMS + 3} sources were deleted at once: held, ${code}; ${answer}`)
}

/** The code that records reported, within five seconds. */
async function settledCode(environment: Environment): Promise<string | undefined> {
  const before = environment.refusals.length
  const findCode = () => environment.refusals.slice(before).find(({ name }) => name.startsWith('team-'))?.code
  return poll(findCode, { clock: systemClock, intervalMs: 50, timeoutMs: 5_000 })
}

export function printCommands(environment: Environment, printer: Printer): void {
  const { port } = environment.dnsAddress
  printer.heading('Part 5: commands to try in a second terminal')
  for (const line of [
    `bin/seamark dig @127.0.0.1 -p ${port} ${HOST}`,
    `bin/seamark explain ${HOST} --kubeconfig ${environment.kubeconfigPath} --config ${environment.configPath} --server 127.0.0.1:${port}`,
    `kubectl --kubeconfig ${environment.kubeconfigPath} get httpproxies,dnsendpoints -A`,
    `kubectl --kubeconfig ${environment.kubeconfigPath} -n shop patch httpproxy blog --type merge -p '{"spec":{"virtualhost":{"fqdn":"news.${ZONE}"}}}'`,
    'bin/seamark playground --script examples/fleet/scenarios/move.yaml       # a host moves to another cluster',
    'bin/seamark contour-plus --dry-run --service-name NAMESPACE/SERVICE      # on your own cluster: reads, writes nothing',
  ]) {
    printer.line(line)
  }
}

/** Prints each change of a record until the signal aborts. */
export async function follow(environment: Environment, printer: Printer, signal: AbortSignal): Promise<void> {
  let before = recordsOf(environment)
  const printChanges = (): undefined => {
    const now = recordsOf(environment)
    for (const [key, value] of now)
      if (before.get(key) !== value) printer.line(`${before.has(key) ? '~' : '+'} ${key} ${value}`)
    for (const key of before.keys()) if (!now.has(key)) printer.line(`- ${key}`)
    before = now
  }
  await poll(printChanges, { clock: systemClock, intervalMs: 200, signal })
}

function recordsOf(environment: Environment): Map<string, string> {
  const records = new Map<string, string>()
  for (const zone of environment.dns.zones()) {
    for (const set of zone.sets())
      if (set.type !== 'SOA' && set.type !== 'TXT') records.set(`${set.name} ${set.type}`, set.values.join(', '))
  }
  return records
}

async function applyExample(environment: Environment, file: string): Promise<string[]> {
  return environment.applyExample(findExample(file))
}

export function findExample(file: string): string {
  const [packed = '', checkout = ''] = EXAMPLES.map((folder) => join(folder, file))
  return existsSync(packed) ? packed : checkout
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

async function answerNow(environment: Environment, host: string): Promise<string> {
  const answer = await environment.ask(host)
  return answer.length === 0 ? `${host} DOES NOT ANSWER` : `${host} still answers ${answer.join(', ')}`
}

async function untilAnswered(environment: Environment, host: string, startedMs: number): Promise<string[]> {
  const ask = async () => {
    const answer = await environment.ask(host)
    return answer.length > 0 ? answer : undefined
  }
  const timeoutMs = ANSWER_LIMIT_MS - (Date.now() - startedMs)
  const found = await poll(ask, { clock: systemClock, intervalMs: 25, timeoutMs })
  if (found !== undefined) return found
  throw new NoAnswer(`${host} did not answer within ${ANSWER_LIMIT_MS / 1_000} s`)
}

async function until<T>(what: string, read: () => Promise<T | undefined>, isRight: (value: T) => boolean): Promise<T> {
  const check = async () => {
    const value = await read().catch((error: unknown) => {
      if (error instanceof NotFound) return undefined
      throw error
    })
    return value !== undefined && isRight(value) ? value : undefined
  }
  const found = await poll(check, { clock: systemClock, intervalMs: 25, timeoutMs: ANSWER_LIMIT_MS })
  if (found !== undefined) return found
  throw new NoAnswer(`${what} did not come within ${ANSWER_LIMIT_MS / 1_000} s`)
}
