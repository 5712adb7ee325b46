/** Runs the script against one server and records the normalised responses, one paragraph per request. */
import { setTimeout as delay } from 'node:timers/promises'
import { createNormaliser } from './normalise.ts'
import { rawClient, type RawAnswer, type RawClient } from './raw-client.ts'
import type { Seen, Step } from './step.ts'

const untilMs = 10_000

/** What a real server gets by a watch, and so a moment after the write: roles and admission configurations. */
const LEARNED_LATER = /^\/apis\/(rbac\.authorization|admissionregistration)\.k8s\.io\//
/** So many steps after such a write wait for it. */
const WAITING_STEPS = 8

/**
 * `METHOD path` of each step with the response, in order. With recorded statuses, a step that follows a change of roles or
 * of admission waits until a dry run has the recorded status, or its time is over: the change may reach the server late.
 */
export async function runScript(
  script: readonly Step[],
  kubeconfig: string,
  recordedStatuses: readonly number[] = [],
): Promise<string[]> {
  const client = rawClient(kubeconfig)
  const normaliser = createNormaliser()
  const seen = new Map<string, string>()
  const recall: Seen = (name) => parseObject(seen.get(name) ?? '')
  const paragraphs: string[] = []
  let learnedAt = Number.NEGATIVE_INFINITY
  try {
    for (const [index, step] of script.entries()) {
      const path = typeof step.path === 'string' ? step.path : step.path(recall)
      const body = step.bodyFrom?.(recall) ?? step.body
      const status = recordedStatuses[index]
      if (status !== undefined && index - learnedAt <= WAITING_STEPS)
        await untilLearned(client, step, path, body, status)
      if (step.method !== 'GET' && LEARNED_LATER.test(path)) learnedAt = index
      const answer = await sendUntil(client, step, path, body)
      if (step.as !== undefined) seen.set(step.as, answer.text)
      const displayedPath =
        typeof step.path === 'string' ? path : path.replaceAll(/(resourceVersion|continue)=[^&]+/g, '$1=…')
      paragraphs.push(
        `## ${index + 1}. ${step.method} ${displayedPath}\n${describeBody(step)}${normaliser.answer(answer)}\n`,
      )
    }
  } finally {
    client.close()
  }
  return paragraphs
}

async function untilLearned(client: RawClient, step: Step, path: string, body: unknown, status: number): Promise<void> {
  if (step.lines !== undefined || path.includes('dryRun')) return
  const dryRun = step.method === 'GET' ? path : `${path}${path.includes('?') ? '&' : '?'}dryRun=All`
  await sendUntil(client, { ...step, until: (answer) => answer.status === status }, dryRun, body)
}

async function sendUntil(client: RawClient, step: Step, path: string, body: unknown): Promise<RawAnswer> {
  const { method, headers = {}, lines, until } = step
  const deadline = performance.now() + untilMs
  for (;;) {
    const answer = await client.send({
      method,
      path,
      headers,
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(lines !== undefined && { lines }),
    })
    if (until === undefined || until(answer) || performance.now() > deadline) return answer
    await delay(25)
  }
}

function describeBody({ headers, body }: Step): string {
  const type = headers?.['content-type'] ?? headers?.['accept']
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  return `${type === undefined ? '' : `   ${type}\n`}${text === '' ? '' : `   ${text.replaceAll('\n', '\n   ')}\n`}`
}

/** A failed step must not stop the following ones: each reports its own difference. */
function parseObject(text: string): ReturnType<Seen> {
  try {
    return JSON.parse(text) as ReturnType<Seen>
  } catch {
    return { metadata: { resourceVersion: '', uid: '', continue: '' } }
  }
}
