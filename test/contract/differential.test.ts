/**
 * Runs one script against two servers. recording.txt contains the responses of kube-apiserver 1.36 (`RECORD=1` rewrites
 * it); the embedded server must always respond the same, and so must a real server when available.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { ControlPlane } from '@seamark/kube/testing'
import { beforeAll, describe, expect, it } from 'vitest'
import { startEmbeddedServer } from '../integration/apiserver/embedded-server.ts'
import { runScript } from './differential/run-script.ts'
import { script } from './differential/script.ts'

const file = join(import.meta.dirname, 'differential/recording.txt')
const isRecording = process.env['RECORD'] === '1'

const servers = [
  { name: 'the embedded server', isReal: false, isSkipped: isRecording, run: runOnEmbedded },
  { name: 'a real kube-apiserver', isReal: true, isSkipped: !needs('kube-apiserver', 'etcd'), run: runOnReal },
]

describe.each(servers)('$name answers as recorded', ({ run, isReal, isSkipped }) => {
  let answered: readonly string[] = []
  let recorded: readonly string[] = []
  beforeAll(async () => {
    if (isSkipped) return
    const before = readRecording()
    answered = await run(before.map(statusOf))
    if (isRecording && isReal) writeFileSync(file, answered.join('\n'))
    recorded = readRecording()
  })

  const steps = script.map(({ method, path }, index) => ({
    index,
    method,
    path: typeof path === 'string' ? path : '…',
  }))
  it.skipIf(isSkipped).each(steps)('$index: $method $path', ({ index }) => {
    expect(answered[index]?.trimEnd()).toBe(recorded[index]?.trimEnd())
  })
})

function readRecording(): string[] {
  return readFileSync(file, 'utf8').split(/^(?=## \d+\. )/m)
}

/** The first line of a response is its status. */
function statusOf(paragraph: string): number {
  return Number(/^(\d{3})$/m.exec(paragraph)?.[1])
}

async function runOnEmbedded(): Promise<string[]> {
  const embedded = await startEmbeddedServer({ controllers: false })
  try {
    return await runScript(script, embedded.kubeconfig)
  } finally {
    await embedded.stop()
  }
}

async function runOnReal(statuses: readonly number[]): Promise<string[]> {
  await using plane = await ControlPlane.start()
  return await runScript(script, plane.kubeconfig(), statuses)
}
