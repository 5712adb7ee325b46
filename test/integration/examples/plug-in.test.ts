/** docs/providers/plug-in.md: its example is loaded as `seamark dnslb` loads it, and passes the conformance kit. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CONFORMANCE, createProviderTypes, loadPlugins } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const plugins = join(root, 'examples/dns-load-balancer/plugins')

let folder = ''
const types = createProviderTypes()
const create = async (values: Record<string, string>) => types.create('json-file', 'example', values)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seamark-plug-in-'))
  const log = { info: () => undefined, error: (fields: object) => expect.fail(JSON.stringify(fields)) }
  expect(await loadPlugins(plugins, types, log as unknown as Parameters<typeof loadPlugins>[2])).toEqual(['json-file'])
})

afterAll(async () => rm(folder, { recursive: true, force: true }))

describe('the plug-in of the documentation', () => {
  it('says which values it lacks', async () => {
    await expect(create({})).rejects.toThrow('FILE and ZONES are required')
  })

  it.each(CONFORMANCE)('conforms: $title', async ({ run }) => {
    const provider = await create({ FILE: join(folder, 'records.json'), ZONES: 'example.com' })
    if (provider === undefined) throw new Error('there is no type json-file')
    const { signal } = new AbortController()
    const [zone] = await provider.zones(signal)
    if (zone === undefined) throw new Error('there is no zone')
    await expect(run({ provider, zone, signal })).resolves.toBeUndefined()
  })

  it('is the one that the page shows', async () => {
    const page = await readFile(join(root, 'docs/providers/plug-in.md'), 'utf8')
    const [, shown = ''] = /```js\n([\s\S]*?)```/.exec(page) ?? []
    const program = await readFile(join(plugins, 'json-file.mjs'), 'utf8')
    const withoutSpace = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
    expect(withoutSpace(shown)).not.toBe('')
    for (const part of shown.split(/^ *\/\/ …$/m)) expect(withoutSpace(program)).toContain(withoutSpace(part))
  })
})
