/** Runs the script against one server and records the normalised responses, one paragraph per request. */
import { setTimeout as delay } from 'node:timers/promises'
import { createNormaliser } from './normalise.ts'
import { rawClient, type RawAnswer, type RawClient } from './raw-client.ts'
import type { Seen, Step } from './step.ts'

const untilMs = 10_000

/** `METHOD path` of each step with the response, in order. */
export async function runScript(script: readonly Step[], kubeconfig: string): Promise<string[]> {
  const client = rawClient(kubeconfig)
  const normaliser = createNormaliser()
  const seen = new Map<string, string>()
  const recall: Seen = (name) => parseObject(seen.get(name) ?? '')
  const paragraphs: string[] = []
  try {
    for (const [index, step] of script.entries()) {
      const path = typeof step.path === 'string' ? step.path : step.path(recall)
      const answer = await sendUntil(client, step, path, step.bodyFrom?.(recall) ?? step.body)
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
