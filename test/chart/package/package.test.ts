/**
 * The npm package and the image, which has the same files.
 *
 * The package is packed, installed in an empty folder without a network, and used as a person does. The image is assembled from the
 * Containerfile in a folder: its files beside Node and the system libraries of this machine, as its user, without capabilities, on a
 * root that cannot be written, in a network of its own that has loopback only.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { isRequired, needs } from '@seamark/kit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { krewManifest } from '../../../scripts/krew.ts'
import { kubectl } from '../../integration/docs/terminal.ts'
import { BuiltPackage, ROOT, run } from './built-package.ts'
import { readImage } from './containerfile.ts'
import { IN_IMAGE, MANAGER } from './image-scripts.ts'

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
const image = readImage(readFileSync(join(ROOT, 'Containerfile'), 'utf8'))

/** With one of processes: what a script started ends with it, also when it fails. */
const NAMESPACES = ['--mount', '--net', '--pid', '--fork', '--kill-child']

const canUnshare =
  needs('unshare', 'ip', 'setpriv') &&
  (spawnSync('unshare', [...NAMESPACES, 'true']).status === 0 || isRequired('unshare'))

let built: BuiltPackage

beforeAll(() => void (built = new BuiltPackage()), 120_000)
afterAll(() => built[Symbol.dispose]())

describe.skipIf(!needs('npm', 'npx'))('the npm package', () => {
  let archive = ''
  let folder = ''
  const env = { ...process.env }
  const shell = (...args: [command: string, ...rest: string[]]): string => run(args[0], args.slice(1), folder, env)

  beforeAll(() => {
    archive = built.pack()
    folder = join(built.scratch, 'empty')
    mkdirSync(folder)
    // No configuration of this checkout, and no registry.
    for (const name of Object.keys(env)) if (name.toLowerCase().startsWith('npm_')) delete env[name]
    shell('npm', 'install', '--offline', '--no-audit', '--no-fund', archive)
    env['PATH'] = `${join(folder, 'node_modules/.bin')}${delimiter}${env['PATH'] ?? ''}`
  }, 120_000)

  it('is one package that brings no other', () => {
    expect(readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['seamark'])
  })

  it('runs with npx', () => {
    expect(shell('npx', '--offline', 'seamark', '--version')).toMatch(new RegExp(`^seamark ${version} `))
  })

  it('plays the playground', () => {
    expect(shell('npx', '--offline', 'seamark', 'playground', '--once')).toContain('shop.demo.test answers')
  })

  it.skipIf(kubectl === undefined)('is a plug-in of kubectl', () => {
    expect(shell(kubectl ?? '', 'seamark', 'version')).toMatch(new RegExp(`^seamark ${version} `))
  })

  it.skipIf(!needs('bash'))('completes in shells', () => {
    const complete =
      'source <(seamark completion bash); COMP_WORDS=(seamark provi); COMP_CWORD=1; _seamark; echo ${COMPREPLY[@]}'
    expect(shell('bash', '-c', complete).trim()).toBe('provider')
    expect(shell('seamark', 'completion', 'zsh')).toMatch(/^#compdef seamark\n/)
    expect(shell('seamark', 'completion', 'fish')).toContain('complete -c seamark')
  })

  it.skipIf(!needs('bash'))('completes `kubectl seamark` in the form that kubectl reads', () => {
    expect(shell('kubectl_complete-seamark', 'ver')).toBe('version\n:4\n')
    expect(shell('kubectl_complete-seamark', 'dns', 'serve', '--lis')).toBe('--listen\n:4\n')
    // Zone files: kubectl lets the shell offer files.
    expect(shell('kubectl_complete-seamark', 'dns', 'serve', 'zone')).toBe(':0\n')
  })

  it('has the licence of every package inside, and a bill of materials that names them', () => {
    const at = (name: string): string => readFileSync(join(folder, 'node_modules/seamark', name), 'utf8')
    const bill = JSON.parse(at('sbom.cdx.json')) as {
      bomFormat: string
      metadata: { component: { name: string; version: string } }
      components: { name: string; version: string; purl: string; group?: string }[]
      dependencies: { ref: string; dependsOn: string[] }[]
    }
    expect(bill.bomFormat).toBe('CycloneDX')
    expect(bill.metadata.component).toMatchObject({ name: 'seamark', version })
    const names = bill.components.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['undici', 'zod', 'yaml', 'classic-level', '@grpc/grpc-js']))
    expect(names).not.toEqual(expect.arrayContaining(['vitest']))
    const refs = new Set(bill.dependencies.map(({ ref }) => ref))
    expect(bill.dependencies.flatMap(({ dependsOn }) => dependsOn).filter((ref) => !refs.has(ref))).toEqual([])
    const licences = at('THIRD-PARTY-LICENSES.txt')
    expect(bill.components.filter((each) => !licences.includes(`\n${each.name} ${each.version} (`))).toEqual([])
    expect(licences).not.toContain('(undefined)')
    // Linked into the native library of classic-level.
    expect(licences).toContain('The LevelDB Authors')
    expect(at('LICENSE')).toContain('Apache License')
  })

  it('is what the manifest for krew describes', () => {
    const template = readFileSync(join(ROOT, 'packaging/krew.yaml'), 'utf8')
    const uri = 'https://packages.example.com/seamark.tgz'
    const bytes = readFileSync(archive)
    const filled = krewManifest(template, version, uri, bytes)
    const { spec } = parse(filled) as {
      spec: { version: string; platforms: { uri: string; sha256: string; files: { from: string }[]; bin: string }[] }
    }
    expect(filled).not.toMatch(/[{}]{2}/)
    expect(spec.version).toBe(`v${version}`)
    for (const platform of spec.platforms) {
      expect(platform.uri).toBe(uri)
      expect(platform.sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
      expect(platform.files).toEqual([{ from: 'package/*', to: '.' }])
      expect(existsSync(join(built.folder, platform.bin))).toBe(true)
    }
    expect(() => krewManifest(template, version, 'http://packages.example.com/seamark.tgz', bytes)).toThrow('https')
  })
})

describe.skipIf(!canUnshare)('the image', () => {
  function inImage(...command: readonly string[]): { status: number | null; stdout: string; stderr: string } {
    const args = [built.folder, built.root, process.execPath, String(image.user), ...command]
    return spawnSync('unshare', [...NAMESPACES, 'sh', '-e', '-c', IN_IMAGE, 'sh', ...args], {
      encoding: 'utf8',
      timeout: 120_000,
    })
  }

  it('has the files of the npm package and nothing else, and a user who is not root', () => {
    expect(image.files).toEqual({ '/seamark': '/src/dist/npm' })
    expect(image.user).toBe(10_000)
  })

  it('starts its program as that user', () => {
    const { status, stdout, stderr } = inImage(...image.entryPoint, 'version')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(/^seamark \d/)
  })

  it('can write nothing but its volume, and reach nobody', () => {
    const script = `id -u; for folder in / /seamark /tmp /usr; do touch "$folder/x" 2>/dev/null && echo "wrote $folder"; done
      touch /data/x && echo volume; grep -c . /proc/net/route; grep CapEff /proc/self/status`
    const { stdout } = inImage('sh', '-c', script)
    expect(stdout.split('\n').map((line) => line.replaceAll(/\s+/g, ' '))).toEqual([
      '10000',
      'volume',
      '1',
      'CapEff: 0000000000000000',
      '',
    ])
  })

  it('runs the manager, which gets ready, serves its zone and ends by a signal', () => {
    const { status, stdout, stderr } = inImage('sh', '-c', MANAGER, 'sh', ...image.entryPoint)
    expect(stderr).toBe('')
    expect(stdout.split('\n')[0]).toBe('ready')
    expect(stdout).toMatch(/^\S+ \S+ \d+ \d+ \d+ \d+ \d+$/m)
    expect(stdout).toContain('manager ended with 0')
    expect(status).toBe(0)
  })
})
