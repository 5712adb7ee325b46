/**
 * docs/runtime.md: the program in it is the one that is compiled, and it does what the page says.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { needs } from '@seamark/kit'
import { configFromText, ConfigMap, connect, kind, type Condition, type Obj } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { startEmbeddedPlane } from '../apiserver/embedded-server.ts'

interface Site extends Obj {
  spec: { host: string }
  status?: { conditions?: Condition[] }
}
const Site = kind<Site>({ group: 'example.test', version: 'v1', kind: 'Site', plural: 'sites', namespaced: true })

const root = join(import.meta.dirname, '../../..')
const program = join(root, 'docs/site-controller.ts')
const RUN = ['--conditions=source', '--import', 'tsx']

async function blocksOf(language: string): Promise<string[]> {
  const page = await readFile(join(root, 'docs/runtime.md'), 'utf8')
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(([, text = '']) => text)
}

const withoutIndent = (text: string): string => text.replaceAll(/^ +/gm, '').trim()

async function run(kubeconfig: string): Promise<{ child: ChildProcess; output: () => string }> {
  const child = spawn(process.execPath, [...RUN, program], {
    cwd: root,
    env: { ...process.env, KUBECONFIG: kubeconfig, PROBES: '127.0.0.1:0', LEASE: 'site-controller' },
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  let text = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  return { child, output: () => text }
}

describe('docs/runtime.md', () => {
  it('shows code that is compiled', async () => {
    const [shown, ...further] = await blocksOf('ts')
    expect(shown).toBe(await readFile(program, 'utf8'))
    const webhooks = await readFile(join(root, 'docs/site-webhooks.ts'), 'utf8')
    expect(further).toContain(webhooks)
    const examples = further.filter((example) => example !== webhooks)
    const compiled = withoutIndent(await readFile(join(root, 'docs/runtime-examples.ts'), 'utf8'))
    expect(examples).toHaveLength(2)
    for (const example of examples) expect(compiled).toContain(withoutIndent(example))
  })

  it.skipIf(!needs('kube-apiserver', 'etcd'))('has a program that does what it says on a real server', async () => {
    await using plane = await ControlPlane.start({ crds: [await definition()] })
    await checkWhatThePageSays(plane)
  })

  it('has a program that does what it says on the embedded server', async () => {
    await using plane = await startEmbeddedPlane([await definition()])
    await checkWhatThePageSays(plane)
  })

  /** What the program prints for `kubectl apply`. */
  async function definition(): Promise<object> {
    const { stdout } = await promisify(execFile)(process.execPath, [...RUN, program, 'crd'], { cwd: root })
    return JSON.parse(stdout) as object
  }

  async function checkWhatThePageSays(plane: ControlPlane): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'runtime-docs-'))
    const kubeconfig = join(folder, 'kubeconfig')
    await writeFile(kubeconfig, plane.kubeconfig(), { mode: 0o600 })
    const cluster = connect(configFromText(plane.kubeconfig()))
    const { client } = cluster
    const { child, output } = await run(kubeconfig)
    try {
      const site = (name: string, host: string) => ({ metadata: { name, namespace: 'default' }, spec: { host } })
      await client.create(Site, site('shop', 'shop.example.test'))
      await client.create(Site, site('wrong', 'nodots'))
      const page = async () => (await client.find(ConfigMap, 'default/shop-page'))?.data?.['index.html']
      await expect.poll(page, { timeout: 30_000 }).toBe('<h1>hello from shop.example.test</h1>')
      const reason = async (name: string) => (await client.get(Site, `default/${name}`)).status?.conditions?.[0]?.reason
      await expect.poll(async () => reason('shop')).toBe('Rendered')
      await expect.poll(async () => reason('wrong')).toBe('NotADomain')

      await client.patch(ConfigMap, 'default/shop-page', 'merge', { data: { 'index.html': 'defaced' } })
      await expect.poll(page).toBe('<h1>hello from shop.example.test</h1>')

      await client.delete(Site, 'default/shop')
      await expect.poll(async () => client.find(Site, 'default/shop')).toBeUndefined()
      await expect.poll(output, { timeout: 20_000 }).toContain('site withdrawn')

      child.kill('SIGTERM')
      expect(await once(child, 'exit')).toEqual([0, null])
    } finally {
      child.kill('SIGKILL')
      await cluster.close()
      await rm(folder, { recursive: true })
    }
  }
})
