/** What a user reads when something is refused, word for word as at a real kube-apiserver. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findKubectls } from './binaries.ts'
import { makeHome, type Home } from './home.ts'
import { patternOf } from './pattern.ts'
import { cleanUp, targets, type Target } from './targets.ts'
import { formatTranscript, parseTranscript, type Exchange } from './transcript.ts'

const file = join(import.meta.dirname, 'messages.txt')
const exchanges = parseTranscript(readFileSync(file, 'utf8'))
const SESSION_TIMEOUT_MS = 600_000

/** kubectl adds words of its own around the server's; the transcript has those of 1.36. */
const kubectl = (needs('kubectl') ? findKubectls() : []).findLast(({ minor }) => minor >= 36)
const isRecording = process.env['RECORD'] === '1'
const chosen = targets.filter(({ isReal }) => !isRecording || isReal)

describe.skipIf(kubectl === undefined).each(chosen)('messages on $name', ({ start, isSkipped }) => {
  let target: Target
  let home: Home
  const recorded: Exchange[] = []
  beforeAll(async () => {
    if (isSkipped || kubectl === undefined) return
    target = await start()
    home = await makeHome(kubectl, target.kubeconfig)
    await cleanUp(target)
  })
  afterAll(async () => {
    await home?.remove()
    await target?.stop()
    if (isRecording) writeFileSync(file, formatTranscript(recorded))
  })

  // One test: later commands work on what earlier ones made. Every difference is reported.
  it.skipIf(isSkipped)('a session of refused commands', { timeout: SESSION_TIMEOUT_MS }, async () => {
    for (const [index, { run, stdin, outcome }] of exchanges.entries()) {
      const answer = await home.run(run, { stdin })
      const stdout = answer.stdout.replaceAll(/\d+s$/gm, '<age>')
      recorded.push({ run, stdin, outcome: { ...answer, stdout } })
      if (isRecording) continue
      const name = `${index}: kubectl ${run}`
      expect.soft(sortCauses(answer.stderr), name).toBe(sortCauses(outcome.stderr))
      expect.soft(answer.stdout, name).toMatch(patternOf(outcome.stdout))
      expect.soft(answer.exit, name).toBe(outcome.exit)
    }
  })
})

/** A real server walks a schema in the order of a Go map: any. */
function sortCauses(text: string): string {
  const lines = text.split('\n')
  const causes = lines.filter((line) => line.startsWith('* ')).toSorted()
  return lines.map((line) => (line.startsWith('* ') ? causes.shift() : line)).join('\n')
}
