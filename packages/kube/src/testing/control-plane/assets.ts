/**
 * Finds the binaries of a test control plane as envtest does, so that those of `setup-envtest use` are found.
 *
 * Order for each: TEST_ASSET_<NAME>, $KUBEBUILDER_ASSETS, the given folder, /usr/local/kubebuilder/bin (only without
 * $KUBEBUILDER_ASSETS, as in envtest), and then PATH (Debian ships etcd as a plain package). A variable that names a
 * wrong path is an error and is not skipped.
 */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

export type AssetName = 'etcd' | 'kube-apiserver'

type Environment = Readonly<Record<string, string | undefined>>

const DEFAULT_FOLDER = '/usr/local/kubebuilder/bin'

/** Full path of a binary, or undefined. */
export function findAsset(name: AssetName, folder?: string, env: Environment = process.env): string | undefined {
  const direct = env[`TEST_ASSET_${name.toUpperCase().replaceAll('-', '_')}`]
  if (direct !== undefined && direct !== '') return isExecutable(direct) ? direct : undefined
  const assets = env['KUBEBUILDER_ASSETS']
  const isAssetsSet = assets !== undefined && assets !== ''
  const folders = [
    ...(isAssetsSet ? [assets] : []),
    ...(folder !== undefined ? [folder] : []),
    ...(isAssetsSet ? [] : [DEFAULT_FOLDER]),
    ...(env['PATH'] ?? '').split(delimiter).filter((entry) => entry !== ''),
  ]
  return folders.map((entry) => join(entry, name)).find(isExecutable)
}

/** Why no control plane can be started, as the reason of a skipped test; undefined if it can. */
export function missingAssets(folder?: string, env: Environment = process.env): string | undefined {
  const missing = (['etcd', 'kube-apiserver'] as const).filter((name) => findAsset(name, folder, env) === undefined)
  if (missing.length === 0) return undefined
  return (
    `no ${missing.join(' and no ')}: looked in TEST_ASSET_${missing[0]?.toUpperCase().replaceAll('-', '_')}, ` +
    `$KUBEBUILDER_ASSETS, ${folder === undefined ? '' : `${folder}, `}${DEFAULT_FOLDER} and PATH; ` +
    'run `setup-envtest use` and set KUBEBUILDER_ASSETS'
  )
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
