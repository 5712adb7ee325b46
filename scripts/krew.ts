/** packaging/krew.yaml, filled for one release. */
import { createHash } from 'node:crypto'

/** @param archive the packed npm package, as it is at `uri` */
export function krewManifest(template: string, version: string, uri: string, archive: Uint8Array): string {
  if (!uri.startsWith('https://')) throw new Error(`${uri} is no https address; krew downloads the archive from it`)
  const values: Readonly<Record<string, string>> = {
    VERSION: version,
    URI: uri,
    SHA256: createHash('sha256').update(archive).digest('hex'),
  }
  return template.replace(/^#.*\n/, '').replaceAll(/\{\{ (\w+) \}\}/g, (whole, name: string) => values[name] ?? whole)
}
