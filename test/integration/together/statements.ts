/**
 * What Seamark says about a host, beside what a resolver and an HTTP client get. Each function returns contradictions, in
 * words; none: what is said is true.
 */
import { request } from 'node:http'
import { createDnsClient, type DnsClient, groupRecords, RCODE } from '@seamark/dns'
import { findCondition } from '@seamark/kube'
import { GlobalIngress } from '@seamark/operator'
import { DNS_ADDRESS, GATEWAY, HUB_ADDRESS } from './addresses.ts'
import type { World } from './world.ts'

export interface Resolver extends AsyncDisposable {
  /** Addresses of the zone's server, sorted; undefined: it did not answer. */
  ask(host: string): Promise<readonly string[] | undefined>
}

export function openResolver(): Resolver {
  const client: DnsClient = createDnsClient({ tries: 1, timeoutMs: 1_000 })
  return {
    async ask(host) {
      try {
        const { message } = await client.query({ server: { address: DNS_ADDRESS, port: 53 }, name: host, type: 'A' })
        // REFUSED: the zone is not loaded yet.
        if (message.rcode !== RCODE.NOERROR && message.rcode !== RCODE.NXDOMAIN) return undefined
        return groupRecords(message.answers)
          .filter(({ type }) => type === 'A')
          .flatMap(({ values }) => [...values])
          .sort()
      } catch {
        return undefined
      }
    },
    [Symbol.asyncDispose]: async () => client.close(),
  }
}

interface Truth {
  /** What the zone should answer. */
  readonly expected: readonly string[]
  /** Whether that is what the root publishes, and not another object that has the host. */
  readonly isOfRoot: boolean
}

/** Of a host that a root names. */
export async function contradictionsOf(world: World, host: string, { expected, isOfRoot }: Truth): Promise<string[]> {
  const answered = await world.resolver.ask(host)
  if (answered === undefined) return [`${host}: the DNS server does not answer`]
  const found: string[] = []
  const report = (text: string): void => void found.push(`${host}: ${text}, and the zone answers ${textOf(answered)}`)
  if (textOf(answered) !== textOf(expected)) report(`it should be ${textOf(expected)}`)
  const isRight = textOf(answered) === textOf(expected) && answered.length > 0

  const hasRoot = await world.hasRoot(host)
  const published = await publishedOf(world, host)
  if (hasRoot && published === undefined) report('the root has no condition DNSPublished')
  if (published !== undefined && (published.status === 'True') !== (isRight && isOfRoot))
    report(`DNSPublished is ${published.status} (${published.reason}: ${published.message})`)

  const tree = await world.run('tree', host)
  if (hasRoot && tree.code !== 0 && tree.code !== 2) report(`tree ends with ${tree.code}: ${tree.stderr}`)
  const unsaid = answered.filter((address) => !tree.stdout.includes(address))
  if (hasRoot && unsaid.length > 0) report(`tree does not have ${textOf(unsaid)}`)
  for (const { address, state } of addressesOf(tree.stdout)) {
    const isSaid = ['answered', 'draining'].includes(state) || state.endsWith('still answered')
    if (isSaid !== answered.includes(address)) report(`tree says ${address} is ${state}`)
  }

  const { hop, verdict, isBroken } = await explainOf(world, host)
  if (hop === undefined) report(`explain has no hop 'answer' (${verdict})`)
  else {
    const wrong = answered.filter((address) => !hop.text.includes(address))
    if (wrong.length > 0) report(`explain says '${hop.text}'`)
    if (hop.state === 'ok' && textOf(answered) !== textOf(expected)) report(`explain finds its answer right`)
    if (hop.state === 'broken' && isRight && isOfRoot) report(`explain finds its answer wrong: ${hop.text}`)
  }
  if (!isBroken && textOf(answered) !== textOf(expected)) report('explain says that it is as it should be')
  return [...found, ...(await requestsOf(host, answered))]
}

async function publishedOf(world: World, host: string) {
  const { items } = await world.client.list(GlobalIngress)
  const global = items.find(({ spec }) => spec.hosts.some((each) => each.host === host))
  return findCondition(global?.status?.conditions, 'DNSPublished')
}

function addressesOf(tree: string): { readonly address: string; readonly state: string }[] {
  return [...tree.matchAll(/└─ (\d+\.\d+\.\d+\.\d+) {2}(.+)$/gm)].map(([, address = '', state = '']) => ({
    address,
    state: state.trim(),
  }))
}

interface Explained {
  readonly hops: readonly { readonly name: string; readonly state: string; readonly text: string }[]
  readonly firstBroken?: { readonly name: string; readonly text: string }
}

async function explainOf(world: World, host: string) {
  const ran = await world.run('explain', host, '--server', DNS_ADDRESS, '-o', 'json', ...world.configFlags)
  if (ran.code !== 0 && ran.code !== 2)
    return { hop: undefined, verdict: `exit code ${ran.code}: ${ran.stderr}`, isBroken: true }
  const { hops, firstBroken } = JSON.parse(ran.stdout) as Explained
  return { hop: hops.find(({ name }) => name === 'answer'), verdict: firstBroken?.text ?? '', isBroken: ran.code === 2 }
}

/** Every address that is answered serves the host, from the member that has it; behind the gateway of the hub is one of eu1. */
async function requestsOf(host: string, addresses: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const address of addresses) {
    const member = Object.entries(GATEWAY).find(([, each]) => each === address)?.[0]
    const wanted = member ?? (address === HUB_ADDRESS ? 'eu1' : 'nobody')
    const got = await get(address, host)
    if (got !== `200 ${wanted}`) found.push(`${host}: ${address} is answered, and a client there gets ${got}`)
  }
  return found
}

/** Status and body, or why there is none. */
export async function get(address: string, host: string): Promise<string> {
  return new Promise((resolve) => {
    const call = request({ host: address, port: 80, headers: { host }, agent: false, timeout: 2_000 }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
      response.on('end', () => resolve(`${response.statusCode} ${body}`))
    })
    call.on('timeout', () => call.destroy(new Error('no response')))
    call.on('error', (error) => resolve(error.message))
    call.end()
  })
}

export function textOf(addresses: readonly string[]): string {
  return addresses.length === 0 ? 'nothing' : [...addresses].sort().join(' ')
}
