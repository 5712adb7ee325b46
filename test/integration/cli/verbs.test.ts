import { VERBS } from '@seamark/cli/testing'
import { expect, it } from 'vitest'

it.each(VERBS)('the verb $name is loaded, and builds a command with a description', async ({ load }) => {
  const { build } = await load()
  const { signal } = new AbortController()
  const io = { stdout: process.stdout, stderr: process.stderr, env: {}, signal, exit: () => undefined }
  expect(build(io).description()).not.toBe('')
})
