/**
 * Plans as files: JSON that `seamark apply` and `seamark undo` read. A file may contain plans for several zones, with everything
 * needed to apply or undo them.
 */
import { z } from 'zod'
import { RecordsError } from '../../rrset/error.ts'
import { EMPTY_STATE } from '../state/guard-state.ts'
import { approveCommand } from '../../safety/held-change.ts'
import type { Change, Plan, Refusal } from './plan.ts'
import type { RRset } from '../../rrset/rrset.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import { type Reason, REASONS } from '../../reasons.ts'

const PLAN_API_VERSION = 'seamark.io/v1alpha1'

const setSchema = z.object({ name: z.string(), type: z.string(), ttl: z.number().int(), values: z.array(z.string()) })
const reasonSchema = z.custom<Reason>((value) => typeof value === 'string' && Object.hasOwn(REASONS, value))
const changeSchema = z.object({
  provider: z.string(),
  zone: z.string(),
  op: z.enum(['create', 'update', 'delete']),
  name: z.string(),
  type: z.string(),
  from: z.array(z.string()).nullable(),
  to: z.array(z.string()).nullable(),
  /** TTL of `to`, or of `from` for a delete. */
  ttl: z.number().int(),
  /** Only when it differs. */
  fromTtl: z.number().int().optional(),
  reason: reasonSchema,
  message: z.string(),
  owner: z.string(),
  source: z.string(),
  risk: z.enum(['low', 'medium', 'high']),
  ttlEffect: z.number(),
  group: z.string(),
  isApproved: z.boolean().optional(),
  /** The name of `isApproved` in plans of earlier versions. */
  isReleased: z.boolean().optional(),
  markers: z.array(z.object({ from: setSchema.nullable(), to: setSchema.nullable() })),
})
const planFileSchema = z.object({
  apiVersion: z.literal(PLAN_API_VERSION),
  kind: z.literal('Plan'),
  /** One entry per zone; `apply` refuses the plan when a digest changed. */
  base: z.array(
    z.object({
      provider: z.string(),
      zone: z.string(),
      digest: z.string(),
      number: z.number().int(),
      owner: z.string(),
      /** Names owned when the plan was made: the delete budget is a share of them. */
      owned: z.number().int().default(0),
    }),
  ),
  changes: z.array(changeSchema),
  /** Only for reading: what was refused, and why. */
  refused: z.array(z.record(z.string(), z.unknown())).default([]),
})

type PlanFile = z.infer<typeof planFileSchema>

function planFile(plans: readonly Plan[]): PlanFile {
  return {
    apiVersion: PLAN_API_VERSION,
    kind: 'Plan',
    base: plans.map(({ provider, zone, base, number, owner, state }) => ({
      provider,
      zone,
      digest: base,
      number,
      owner,
      owned: state.ownedNames,
    })),
    changes: plans.flatMap((plan) => plan.changes.map((change) => changeEntry(plan, change))),
    refused: plans.flatMap((plan) => plan.refused.map((refusal) => refusalEntry(plan, refusal))),
  }
}

function ttlsOf({ from, to }: SetChange): { ttl: number; fromTtl?: number } {
  const ttl = to?.ttl ?? from?.ttl ?? 0
  return from === undefined || from.ttl === ttl ? { ttl } : { ttl, fromTtl: from.ttl }
}

function changeEntry(plan: Plan, change: Change): PlanFile['changes'][number] {
  const { op, name, type, reason, message, owner, source, risk, ttlEffect, group } = change
  return {
    provider: plan.provider,
    zone: plan.zone,
    op,
    name,
    type,
    from: change.from === undefined ? null : [...change.from.values],
    to: change.to === undefined ? null : [...change.to.values],
    ...ttlsOf(change),
    reason,
    owner,
    risk,
    message,
    source,
    ttlEffect,
    group,
    ...(change.isApproved === true && { isApproved: true }),
    markers: change.markers.map(({ from, to }) => ({ from: setEntry(from), to: setEntry(to) })),
  }
}

function setEntry(set: RRset | undefined): z.infer<typeof setSchema> | null {
  return set === undefined ? null : { name: set.name, type: set.type, ttl: set.ttl, values: [...set.values] }
}

function refusalEntry(plan: Plan, refusal: Refusal): Record<string, unknown> {
  const { op, name, type, from, to, code, why, reason, owner, source, risk, until, since, set } = refusal
  return {
    provider: plan.provider,
    zone: plan.zone,
    op,
    name,
    type,
    from: from?.values ?? null,
    to: to?.values ?? null,
    ...ttlsOf(refusal),
    reason,
    owner,
    risk,
    source,
    code,
    why,
    ...(until !== undefined && { until: new Date(until).toISOString() }),
    ...(since !== undefined && { since: new Date(since).toISOString() }),
    ...(set !== undefined && { set, approve: approveCommand(set) }),
  }
}

export function printPlanJson(plans: readonly Plan[]): string {
  return `${JSON.stringify(planFile(plans), undefined, 2)}\n`
}

/** Throws RecordsError PLAN_UNREADABLE, naming the first field that is wrong. */
export function parsePlanFile(text: string): Plan[] {
  let parsed: PlanFile
  try {
    parsed = planFileSchema.parse(JSON.parse(text))
  } catch (cause) {
    const issue = cause instanceof z.ZodError ? cause.issues[0] : undefined
    const where = issue === undefined ? 'it is not JSON' : `${issue.path.join('.')}: ${issue.message}`
    throw new RecordsError('PLAN_UNREADABLE', `not a plan file: ${where}`, { cause })
  }
  return parsed.base.map(({ provider, zone, digest, number, owner, owned }) => ({
    provider,
    zone,
    number,
    owner,
    base: digest,
    scope: [],
    refused: [],
    state: { ...EMPTY_STATE, ownedNames: owned },
    changes: parsed.changes.filter((entry) => entry.provider === provider && entry.zone === zone).map(changeOf),
  }))
}

function changeOf(entry: PlanFile['changes'][number]): Change {
  const { op, name, type, reason, message, owner, source, risk, ttlEffect, group } = entry
  const set = (values: string[] | null, ttl: number): RRset | undefined =>
    values === null ? undefined : { name, type, ttl, values }
  return {
    op,
    name,
    type,
    from: set(entry.from, entry.fromTtl ?? entry.ttl),
    to: set(entry.to, entry.ttl),
    markers: entry.markers.map(({ from, to }) => ({ from: from ?? undefined, to: to ?? undefined })),
    reason,
    message,
    owner,
    source,
    risk,
    ttlEffect,
    group,
    ...((entry.isApproved === true || entry.isReleased === true) && { isApproved: true }),
  }
}
