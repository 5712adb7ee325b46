/**
 * Controller of DomainVerifications: a random token, and the TXT record with it, asked of the servers of the zone and not of
 * a cache.
 */
import { randomBytes } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { type Manager, requeue, setCondition, specChanged } from '@seamark/kube'
import type { Condition } from '@seamark/kube'
import { DomainVerification } from '../api/domain-verification.ts'
import { challengeName, decideDomain, reasonOf, type TxtAnswer } from './decide/domain.ts'

export type LookupTxt = (name: string) => Promise<TxtAnswer>

export interface DomainControllerOptions {
  readonly lookupTxt: LookupTxt
  readonly isWriting: () => boolean
}

const TOKEN_BYTES = 16
const IDLE_RETRY = '10s'

export function setUpDomains(manager: Manager, { lookupTxt, isWriting }: DomainControllerOptions): void {
  const since = new Map<string, number>()
  manager
    .controller('fleet-domain', DomainVerification, { timeout: '1m', when: specChanged })
    .gone(async (key) => void since.delete(key))
    .reconcile(async (object, ctx) => {
      if (!isWriting()) return requeue(IDLE_RETRY)
      const nowMs = ctx.clock.now()
      const sinceMs = since.get(ctx.key) ?? nowMs
      since.set(ctx.key, sinceMs)
      // Without a token it cannot have been published.
      const answer = object.status?.token === undefined ? [] : await lookupTxt(challengeName(object.spec.domain))
      const newToken = randomBytes(TOKEN_BYTES).toString('hex')
      const { status, afterMs } = decideDomain({ status: object.status, newToken, answer, nowMs, sinceMs })
      const isVerified = status.verified === true
      const record = `${challengeName(object.spec.domain)} TXT "${status.token}"`
      const condition = {
        type: 'Verified',
        status: isVerified ? 'True' : 'False',
        reason: reasonOf(status),
        message: isVerified ? 'the TXT record has the token' : `publish ${record}`,
        observedGeneration: object.metadata.generation,
      } as const
      const conditions = setCondition(object.status?.conditions, condition, nowMs) as Condition[]
      await ctx.status(object, { ...status, observedGeneration: object.metadata.generation, conditions })
      return requeue(afterMs)
    })
}

/** Asks the servers of the closest zone above the name. Undefined: none of them answered. */
export async function lookupAuthoritative(name: string): Promise<TxtAnswer> {
  const system = new Resolver({ timeout: 2_000, tries: 2 })
  const labels = name.split('.')
  for (let index = 1; index < labels.length - 1; index++) {
    const servers = await serversOf(system, labels.slice(index).join('.'))
    if (servers.length === 0) continue
    const resolver = new Resolver({ timeout: 2_000, tries: 2 })
    resolver.setServers(servers)
    try {
      return (await resolver.resolveTxt(name)).map((parts) => parts.join(''))
    } catch (error) {
      const { code } = error as { code?: string }
      return code === 'ENOTFOUND' || code === 'ENODATA' ? [] : undefined
    }
  }
  return undefined
}

async function serversOf(system: Resolver, zone: string): Promise<string[]> {
  try {
    const names = await system.resolveNs(zone)
    const addresses = await Promise.all(names.map(async (server) => system.resolve4(server).catch(() => [])))
    return addresses.flat()
  } catch {
    return []
  }
}
