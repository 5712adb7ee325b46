/** Compares the state of the fleet with what a scenario expects. */
import { type Client, Ingress } from '@seamark/kube'
import { HTTPRoute } from '@seamark/kube/gateway-api'
import { keyOf, type Kind } from '@seamark/kube/object'
import {
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  GlobalIngress,
  HostClaim,
  LeafIngress,
} from '@seamark/operator'
import type { FleetEnvironment } from './fleet-environment.ts'
import type { Expectations } from './scenario-file.ts'
import type { TrafficReport } from '../world/traffic.ts'

export interface Checked {
  readonly met: readonly string[]
  readonly unmet: readonly string[]
}

/** Objects that exist only as long as roots do. */
const GENERATED: readonly Kind[] = [
  GlobalIngress,
  LeafIngress,
  HostClaim,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  DNSEndpoint,
]

export async function checkExpectations(
  wanted: Expectations,
  environment: FleetEnvironment,
  traffic: TrafficReport | undefined,
): Promise<Checked> {
  const met: string[] = []
  const unmet: string[] = []
  const compare = (what: string, actual: string, expected: string): void => {
    if (actual === expected) met.push(`${what} ${actual}`)
    else unmet.push(`${what} ${actual || 'nothing'}, not ${expected || 'nothing'}`)
  }
  const { client } = environment
  for (const [host, clusters] of Object.entries(wanted.answers))
    compare(`${host} answers`, clustersOf(environment, await environment.ask(host)), [...clusters].sort().join(', '))
  for (const [root, leaves] of Object.entries(wanted.leaves))
    compare(`${root} is on`, await leavesOf(client, root), leaves)
  for (const [root, clusters] of Object.entries(wanted.status)) {
    const { status } = await client.get(Ingress, root)
    const addresses = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname = '' }) => ip ?? hostname)
    compare(`the status of ${root} has`, clustersOf(environment, addresses), [...clusters].sort().join(', '))
  }
  for (const [root, summary] of Object.entries(wanted.summary)) {
    const { metadata } = await client.get(Ingress, root)
    compare(`${root} says`, metadata.annotations?.['seamark.io/summary'] ?? '', summary)
  }
  for (const [root, condition] of Object.entries(wanted.condition)) {
    const type = condition.slice(0, condition.indexOf('='))
    const found = (await globalOf(client, root))?.status?.conditions?.find((each) => each.type === type)
    compare(`${root}:`, `${type}=${found?.status}/${found?.reason}`, condition)
  }
  for (const [host, owner] of Object.entries(wanted.owner))
    compare(`${host} belongs to`, await ownerOf(client, host), owner)
  if (wanted.failedRequests !== undefined)
    compare('failed requests:', failedOf(traffic, wanted.failedRequests), String(wanted.failedRequests))
  if (wanted.nothingLeft)
    compare('left of the fleet:', (await remainders(environment)).join(', ') || 'nothing', 'nothing')
  return { met, unmet }
}

/** How many failed, and why when that is not the number that is wanted. */
function failedOf(traffic: TrafficReport | undefined, wanted: number): string {
  if (traffic === undefined) return 'no client'
  return traffic.failed === wanted ? String(wanted) : `${traffic.failed} (${traffic.failures.join('; ')})`
}

/** Names of clusters instead of their addresses; what belongs to none is shown as it is. */
function clustersOf({ members }: FleetEnvironment, addresses: readonly string[]): string {
  const byAddress = new Map([...members.values()].map(({ address, name }) => [address, name]))
  return addresses
    .map((address) => byAddress.get(address) ?? address)
    .sort()
    .join(', ')
}

async function leavesOf(client: Client, root: string): Promise<string> {
  const [namespace = '', name] = root.split('/')
  const { items } = await client.list(LeafIngress, { namespace })
  return items
    .filter(({ metadata }) => metadata.annotations?.['seamark.io/root'] === name)
    .map(({ spec, status }) => `${spec.cluster} ${status?.phase ?? 'Pending'}`)
    .sort()
    .join(', ')
}

async function globalOf(client: Client, root: string): Promise<GlobalIngress | undefined> {
  const [namespace = '', name] = root.split('/')
  const { items } = await client.list(GlobalIngress, { namespace })
  return items.find(({ spec }) => spec.rootRef.name === name)
}

async function ownerOf(client: Client, host: string): Promise<string> {
  const { items } = await client.list(HostClaim)
  const claim = items.find(({ spec }) => spec.host === host)
  return (claim?.spec.owners ?? []).map((owner) => `${owner.kind} ${claim?.spec.namespace}/${owner.name}`).join(', ')
}

async function remainders(environment: FleetEnvironment): Promise<string[]> {
  const found: string[] = []
  for (const kind of GENERATED) {
    const { items } = await environment.client.list(kind)
    found.push(...items.map((item) => `${kind.kind} ${keyOf(item)}`))
  }
  for (const { client, name } of environment.members.values())
    for (const kind of [Ingress, HTTPRoute] as readonly Kind[]) {
      const { items } = await client.list(kind, { labelSelector: 'seamark.io/managed=true' })
      found.push(...items.map((item) => `${kind.kind} ${keyOf(item)} on ${name}`))
    }
  return found
}
