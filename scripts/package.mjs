/**
 * `package.mjs [FOLDER]` writes dist/npm, or another folder: what `npm pack` packs, and what the image has as /seamark. It needs nothing but
 * Node: the bundle, the programs, licences and the list of what is inside (SBOM). The same sources give the same files.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { bundle } from './bundle.mjs'
import { billOfMaterials, licenceTexts } from './materials.mjs'

const root = join(import.meta.dirname, '..')
const folder = resolve(process.argv[2] ?? join(root, 'dist/npm'))
const { version, description, license, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

function write(name, contents, mode = 0o644) {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, contents, { mode })
}

function run(command, ...args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`)
  return stdout
}

rmSync(folder, { recursive: true, force: true })
const { files, packages } = await bundle(join(folder, 'dist'))
for (const { path, contents } of files) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, contents)
}

for (const name of ['LICENSE', 'README.md']) copyFileSync(join(root, name), join(folder, name))
mkdirSync(join(folder, 'bin'))
const program = join(folder, 'bin/seamark')
copyFileSync(join(root, 'bin/seamark'), program)
// kubectl runs this one for the completion of `kubectl seamark`.
write('bin/kubectl_complete-seamark', run(program, 'completion', 'kubectl'), 0o755)

const manifest = {
  name: 'seamark',
  version,
  description,
  keywords: ['kubernetes', 'dns', 'ingress', 'gateway-api', 'gslb', 'external-dns', 'contour', 'kubectl-plugin'],
  license,
  type: 'module',
  bin: {
    seamark: 'bin/seamark',
    'kubectl-seamark': 'bin/seamark',
    'kubectl_complete-seamark': 'bin/kubectl_complete-seamark',
  },
  engines,
  os: ['linux', 'darwin'],
}
write('package.json', json(manifest))
write('THIRD-PARTY-LICENSES.txt', licenceTexts(root, packages))
const installed = JSON.parse(run('npm', 'sbom', '--sbom-format=cyclonedx', '--loglevel=error'))
write('sbom.cdx.json', json(billOfMaterials(installed, root, packages, manifest)))

function json(value) {
  return `${JSON.stringify(value, undefined, 2)}\n`
}
