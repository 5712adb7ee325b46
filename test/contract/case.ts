/** Types and helpers of contract cases. */
import { expect } from 'vitest'
import type { Client, Json, Options, Reply } from './client.ts'

export interface CaseContext {
  readonly client: Client
  /** A client that impersonates another user. */
  as(user: string, ...groups: string[]): Client
  /** Namespace of this case. */
  readonly ns: string
  /** Group of the custom resource Widget (v1 stored, v1beta1 served and deprecated, v1alpha1 not served). */
  readonly group: string
  readonly isReal: boolean
  /** Collection paths in the case's namespace. */
  readonly maps: string
  readonly widgets: string
  readonly services: string
  readonly deployments: string
  /** A Widget with this name and these fields. */
  widget(name: string, fields?: object): object
  map(name: string, fields?: object): object
}

export interface Case {
  readonly name: string
  /** The row of the specification that the case covers. */
  readonly covers: string
  /** Needs kube-controller-manager; skipped on a bare kube-apiserver. */
  readonly needsControllers?: boolean
  /** Reason for skipping the case on the real server in CI. */
  readonly notOnReal?: string
  run(t: CaseContext): Promise<void>
}

export type Run = Case['run']

/** Cases of one area: `[name, run]`, each with the same `covers`. */
export function area(covers: string, cases: Readonly<Record<string, Run>>, more: Partial<Case> = {}): Case[] {
  return Object.entries(cases).map(([name, run]) => ({ name, covers, run, ...more }))
}

export type Row = readonly [
  method: string,
  path: (t: CaseContext) => string,
  options: (t: CaseContext) => Options,
  status: number,
  message?: string | RegExp,
]

/** Requests whose response is compared by status and exact message. */
export function answers(covers: string, rows: Readonly<Record<string, Row>>, prepare?: Run): Case[] {
  return Object.entries(rows).map(([name, [method, path, options, status, message]]) => ({
    name,
    covers,
    async run(t) {
      await prepare?.(t)
      const reply = await t.client.request(method, path(t), options(t))
      if (message !== undefined) expectMessage(reply, status, message)
      expect(reply.status, reply.text).toBe(status)
    },
  }))
}

function expectMessage(reply: Reply, status: number, message: string | RegExp): void {
  const text = String(reply.json?.['message'] ?? reply.text)
  if (typeof message === 'string') expect(text).toBe(message)
  else expect(text).toMatch(message)
  expect(reply.status).toBe(status)
  if (reply.json !== undefined) expect(reply.json['code']).toBe(status)
}

/** Checks the status of a response and returns its body. */
export async function ok(promise: Promise<Reply>, status = 200): Promise<Json> {
  const reply = await promise
  expect(reply.status, reply.text).toBe(status)
  return reply.json
}

export const merge = { type: 'application/merge-patch+json' } as const
export const strategic = { type: 'application/strategic-merge-patch+json' } as const
export const jsonPatch = { type: 'application/json-patch+json' } as const
export const applyPatch = { type: 'application/apply-patch+yaml' } as const

export function names(list: Json): string[] {
  return (list['items'] as unknown as Json[]).map((item) => String((item['metadata'] as Json)['name']))
}

/** Waits for the result of a controller. */
export async function until(isDone: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + 60_000
  while (!(await isDone())) {
    if (Date.now() > deadline) throw new Error(`not within 60 s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
