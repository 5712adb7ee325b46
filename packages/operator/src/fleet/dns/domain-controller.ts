/**
 * Controller of DomainVerifications: a random token, and the TXT record with it, asked of the servers of the zone and not of
 * a cache.
 */
import { randomBytes } from 'node:crypto'
import { groupRecords } from '@seamark/dns'
import { type Manager, requeue, setCondition, specChanged } from '@seamark/kube'
import type { Condition } from '@seamark/kube'
import { askAny, type AuthoritativeClient } from '../../authority/answers.ts'
import type { FindServers } from '../../authority/name-servers.ts'
import { DomainVerification } from '../../api/domain-verification.ts'
import { challengeName, decideDomain, reasonOf, type TxtAnswer } from '../decide/domain.ts'

type LookupTxt = (name: string) => Promise<TxtAnswer>

export interface DomainControllerOptions {
  readonly lookupTxt: LookupTxt
  readonly isWriting: () => boolean
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
}

const TOKEN_BYTES = 16
const IDLE_RETRY = '10s'

export function setUpDomains(manager: Manager, { lookupTxt, isWriting, untilMayWrite }: DomainControllerOptions): void {
  const since = new Map<string, number>()
  manager
    .controller('fleet-domain', DomainVerification, { timeout: '1m', when: specChanged })
    .gone(async (key) => void since.delete(key))
    .reconcile(async (object, ctx) => {
      await untilMayWrite(ctx)
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

/** Asks the servers of the name until one answers with authority for its zone. Undefined: none did. */
export async function lookupTxt(
  name: string,
  client: AuthoritativeClient,
  findServers: FindServers,
): Promise<TxtAnswer> {
  const servers = await findServers(name)
  const answer = await askAny(client, { name, types: ['TXT'] }, servers, new AbortController().signal)
  if ('why' in answer) return undefined
  return groupRecords(answer.answers).flatMap(({ type, values }) => (type === 'TXT' ? values.map(textOf) : []))
}

/** The strings of a TXT record, joined (RFC 7208 §3.3). */
function textOf(value: string): string {
  return value.replaceAll('" "', '').replaceAll(/^"|"$/g, '')
}
