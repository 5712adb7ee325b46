/** The command line as users run it: the real bin/seamark, in pipes, with typing mistakes, with shell completion. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '@seamark/kit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const seamark = join(root, 'bin/seamark')
const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent' }

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function run(...argv: string[]): Ran {
  const { status, stdout, stderr } = spawnSync(seamark, argv, { encoding: 'utf8', env, cwd: root })
  return { code: status, stdout, stderr }
}

let folder = ''

beforeAll(() => {
  expect(run('version').stdout).toMatch(/^seamark /)
  folder = mkdtempSync(join(tmpdir(), 'seamark-command-line-'))
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('output into a pipe', () => {
  it('ends without an error or a stack when the reader closes early', async () => {
    // A reader that closes before anything is written: the first write fails with EPIPE.
    const child = spawn(seamark, ['run', '--help'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.destroy()
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    const [code] = (await once(child, 'close')) as [number]
    expect([code, stderr]).toEqual([0, ''])
  })

  it('prints everything to a reader that is slower than the command', async () => {
    const whole = run('completion', 'zsh').stdout
    const { stdout } = await promisify(execFile)('sh', ['-c', `${seamark} completion zsh | (read line; cat)`], { env })
    expect(whole.length).toBeGreaterThan(10_000)
    expect(stdout).toBe(whole.slice(whole.indexOf('\n') + 1))
  })
})

describe('help', () => {
  it('of a verb is the same after help and before --help', () => {
    expect(run('help', 'dns', 'serve')).toEqual(run('dns', 'serve', '--help'))
    expect(run('help', 'provider', 'list').stdout).toContain('Usage: seamark provider list')
    expect(run('help', 'dns', 'serve').stdout).toContain('--listen <address>')
  })

  it('lists every verb, with the exit codes', () => {
    const { code, stdout } = run('--help')
    expect(code).toBe(0)
    expect(run('help').stdout).toBe(stdout)
    expect(stdout).toContain('  dns serve')
    expect(stdout).toContain('5 wrong usage')
  })

  it('of run groups the settings and explains each', () => {
    const { stdout } = run('help', 'run')
    const headings = [...stdout.matchAll(/^\S.*:$/gm)].map(([heading]) => heading)
    expect(headings).toEqual([
      'Options:',
      'Settings of the manager:',
      'Settings of balance:',
      'Settings of the gateway:',
      'Settings of publish:',
      'Settings of records:',
      'Settings of wildcard:',
      'Settings of the DNS server:',
      'Example:',
    ])
    expect(stdout).toMatch(/--publish-prune \[true\|false\]\n +delete a generated object[^[]*\[SEAMARK_PUBLISH_PRUNE\]/)
    expect(stdout).not.toMatch(/\n {2}--\S+ ?\S*\n {8}\[/)
  })
})

describe('wrong usage', () => {
  const cases: [argv: string, says: string][] = [
    ['', 'Usage: seamark VERB'],
    ['appyl', "unknown command 'appyl' (Did you mean apply?)"],
    ['help appyl', "unknown command 'appyl' (Did you mean apply?)"],
    ['dns', "'dns' needs a further word: seamark dns serve"],
    ['dns srve', "unknown command 'dns srve' (Did you mean dns serve?)"],
    ['provider', 'Usage: seamark provider'],
    ['provider lsit', "unknown command 'lsit' (Did you mean list?)"],
    ['provider list --ouput wide', "unknown option '--ouput' (Did you mean --output?)"],
    ['provider list -o tree', 'Allowed choices are text, wide, json, yaml'],
    ['plan --owne x', "unknown option '--owne' (Did you mean --owner?)"],
    ['plan -o xml', 'Allowed choices are text, wide, json, yaml, md'],
    ['plan --records-owner me --records-cluster c', 'name manifests with -f, or a cluster with --kubeconfig'],
    ['plan -f x --records-types A,B', 'records.types'],
    ['export --as csv', 'Allowed choices are zonefile, dnsendpoint'],
    ['explain', "missing required argument 'host or URL'"],
    ['explain a b', 'too many arguments'],
    ['explain a --server name', '--server name is not ADDRESS or ADDRESS:PORT'],
    ['transfer --from somebody', '--from somebody: must be external-dns/OWNER or dnslb/IDENTITY'],
    ['adopt --from somebody', '--from somebody: must be external-dns/OWNER, dnslb/IDENTITY or unmarked'],
    ['transfer', 'name either --to or --from'],
    ['apiserver --authorization None', 'Allowed choices are RBAC, AlwaysAllow'],
    ['apiserver --controllers maybe', 'Allowed choices are true, false'],
    ['apiserver --listen here', 'is not HOST:PORT'],
    ['dns serve', "missing required argument 'zonefile'"],
    ['dns serve zone', '--listen is missing'],
    ['dig +nosuch x', "'+nosuch' is not known"],
    ['completion csh', 'Allowed choices are bash, zsh, fish'],
    ['config view --mode maybe', 'mode'],
    ['contour-plus --foreign maybe', 'Allowed choices are take, refuse'],
    ['contour-plus', 'service-name'],
    ['contour-plus --service-name a/b --zap-log-level loud', '--zap-log-level loud'],
    ['run --mode maybe', 'mode'],
    ['run --confg x', "unknown option '--confg' (Did you mean --config?)"],
    ['run', 'name it with --namespace'],
    ['run -n x --dns-listen :0', 'add dns.zones'],
    ['run -n x --fleet-enabled', 'add balance.enabled: true'],
    ['run -n x --fleet-enabled --balance-enabled', 'add dns.listen and dns.zones'],
    ['version --nosuch', "unknown option '--nosuch'"],
  ]
  it.each(cases)('seamark %s exits with 5', (argv, says) => {
    const { code, stdout, stderr } = run(...argv.split(' ').filter((word) => word !== ''))
    expect({ code, text: stdout + stderr }).toMatchObject({ code: 5, text: expect.stringContaining(says) as string })
  })

  it('with a list of records and no owner says which setting is missing', () => {
    expect(run('plan', '-f', 'examples', '--records-cluster', 'c')).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('records.owner is required') as string,
    })
  })
})

describe('the last line of a failed manager', () => {
  it.each([['run', '--confg'], ['run', '--config', '/nonexistent/config.yaml'], ['contour-plus']])(
    'of seamark %s %s is a JSON log line',
    (...argv) => {
      const { stderr } = run(...argv.filter((word) => word !== undefined))
      const lines = stderr.trim().split('\n')
      expect(lines).toHaveLength(1)
      expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'fatal', command: argv[0], msg: 'command failed' })
    },
  )
})

describe('forms of output', () => {
  it('are the same value in JSON and YAML', async () => {
    const { parse } = await import('yaml')
    const json = run('config', 'view', '-o', 'json')
    expect(parse(run('config', 'view', '-o', 'yaml').stdout)).toEqual(JSON.parse(json.stdout))
    expect(JSON.parse(run('version', '-o', 'json').stdout)).toMatchObject({ node: process.version })
  })

  it('of a plan', async () => {
    const { parse } = await import('yaml')
    const manifest = join(folder, 'shop.yaml')
    writeFileSync(
      manifest,
      `apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: { namespace: web, name: shop, uid: 7d0d1f6e-1f43-4a6a-9b7e-000000000001 }
spec: { endpoints: [{ dnsName: shop.example.test, recordType: A, recordTTL: 60, targets: [192.0.2.1] }] }
`,
    )
    const planArguments = ['plan', '-f', manifest, '--owner', 'me', '--records-cluster', 'c'].concat(
      ['--records-state-folder', folder],
      ['--records-providers', '{name: mem, type: memory, zones: [example.test]}'],
    )
    const plan = (form: string): string => run(...planArguments, '-o', form).stdout
    expect(plan('wide')).toMatch(/^example\.test\. +mem +create +shop\.example\.test\. +A +- +192\.0\.2\.1 +60 /m)
    // Markers hold the plan's number, which is the time.
    const stable = (text: string): string => text.replaceAll(/plan=\d+/g, 'plan=0')
    const [json, yaml] = [JSON.parse(stable(plan('json'))), parse(stable(plan('yaml')))] as { changes: unknown[] }[]
    expect(yaml?.changes).toEqual(json?.changes)
    expect(json?.changes).toHaveLength(1)
  })
})

it('a plan over twenty providers prints no warning of Node about listeners', () => {
  const manifest = join(folder, 'empty.yaml')
  writeFileSync(manifest, '')
  const providers = Array.from({ length: 20 }, (_, index) => [
    '--records-providers',
    `{name: p${index}, type: memory, zones: [z${index}.test]}`,
  ])
  const argv = ['plan', '-f', manifest, '--owner', 'me', '--records-cluster', 'c', '--records-state-folder', folder]
  const { code, stderr } = run(...argv, ...providers.flat())
  expect([code, stderr]).toEqual([0, expect.not.stringContaining('Warning')])
})

describe('shell completion', () => {
  /** What bash offers for the last of `words`. */
  function complete(...words: string[]): string[] {
    const script = `source <(${seamark} completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _seamark; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['-c', script, 'bash', 'seamark', ...words], { encoding: 'utf8', env })
    expect(stderr).toBe('')
    return stdout.trim().split('\n')
  }

  it.skipIf(findProgram('bash') === undefined)('of bash offers verbs, subcommands, flags and their values', () => {
    expect(complete('exp')).toEqual(['explain', 'export'])
    expect(complete('dns', '')).toEqual(['serve'])
    expect(complete('help', 'un')).toEqual(['undo', 'undrain'])
    expect(complete('provider', 'li')).toEqual(['list'])
    expect(complete('provider', 'list', '--out')).toEqual(['--output'])
    expect(complete('explain', 'host', '-o', '')).toEqual(['text', 'wide', 'json', 'yaml'])
    expect(complete('run', '--mode', 'en')).toEqual(['enforce'])
    expect(complete('completion', 'f')).toEqual(['fish'])
    expect(complete('run', '--config', 'package.j')).toEqual(['package.json'])
  })

  it.each(['bash', 'zsh', 'fish'])('of %s names every verb and has the syntax of its shell', (shell) => {
    const script = run('completion', shell).stdout
    for (const verb of ['adopt', 'completion', 'contour-plus', 'undo']) expect(script).toContain(verb)
    if (findProgram(shell) === undefined) return
    const check = spawnSync(shell, ['-n'], { input: script, encoding: 'utf8' })
    expect([check.status, check.stderr]).toEqual([0, ''])
  })
})
