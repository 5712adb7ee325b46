/**
 * What tests share: finding real programs on the machine, and saying visibly when one is absent.
 *
 * `.ci/run` sets SEAMARK_REQUIRE to the programs it installed; a test that needs one of those fails instead of skipping.
 */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * Whether tests that repeat one thing many times (crashes, processes, generated inputs) do it as often as CI does. Without it
 * they do it often enough to fail when it does not work at all, so that all tests together end within minutes.
 */
export const isThorough = process.env['SEAMARK_CRASHES'] === 'all'

const required = new Set((process.env['SEAMARK_REQUIRE'] ?? '').split(',').filter((name) => name !== ''))

const DEFAULT_ASSETS_FOLDER = '/usr/local/kubebuilder/bin'

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Full path of a program, or undefined. The environment wins as in envtest: TEST_ASSET_KUBE_APISERVER, TEST_ASSET_ETCD. */
export function findProgram(name: string): string | undefined {
  const override = process.env[`TEST_ASSET_${name.toUpperCase().replaceAll('-', '_')}`]
  if (override !== undefined && override !== '') return isExecutable(override) ? override : undefined
  const path = (process.env['PATH'] ?? '').split(delimiter)
  // Debian installs servers in /usr/sbin, which the PATH of a user may lack: the sbin beside each bin is searched too.
  const serverFolders = path.filter((folder) => folder.endsWith('/bin')).map((folder) => join(folder, '../sbin'))
  const folders = [process.env['KUBEBUILDER_ASSETS'] || DEFAULT_ASSETS_FOLDER, ...path, ...serverFolders]
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

/**
 * True when every program is there. Use as `describe.skipIf(!needs('named', 'dig'))('…')`.
 * Throws, and so fails the test file, when an absent program is one that CI promised to install.
 */
export function needs(...names: string[]): boolean {
  const absent = names.filter((name) => findProgram(name) === undefined)
  const broken = absent.filter((name) => required.has(name))
  if (broken.length > 0) throw new Error(`required by SEAMARK_REQUIRE but not installed: ${broken.join(', ')}`)
  return absent.length === 0
}

/** Whether CI promised the program: what it cannot do here is a failure then, and no reason to skip. */
export function isRequired(name: string): boolean {
  return required.has(name)
}
