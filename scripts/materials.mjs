/** What a package of the bundle says about the packages inside: their licences, and the bill of materials in CycloneDX. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const LICENCE_FILE = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i

const manifestOf = (root, path) => JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'))

/** Of the package and of the sources of others that it contains, such as native libraries. */
function licenceFiles(root, path) {
  return readdirSync(join(root, path), { withFileTypes: true }).flatMap((entry) => {
    const inside = join(path, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : licenceFiles(root, inside)
    return LICENCE_FILE.test(entry.name) && !/\.[cm]?[jt]s$/.test(entry.name) ? [inside] : []
  })
}

/** @param {string} root @param {readonly string[]} packages folders, relative to the root */
export function licenceTexts(root, packages) {
  const parts = packages.map((path) => {
    const { name, version, license } = manifestOf(root, path)
    const texts = licenceFiles(root, path).map(
      (file) => `${file.replace('node_modules/', '')}:\n\n${readFileSync(join(root, file), 'utf8').trim()}\n`,
    )
    return [`${name} ${version} (${license})\n`, ...texts].join('\n')
  })
  return ['Seamark contains these packages.\n', ...parts].join(`\n${'-'.repeat(78)}\n\n`)
}

/**
 * What `npm sbom` says of everything installed, reduced to what the bundle contains. Without time and serial number, so that the same
 * sources give the same bytes.
 * @param {{ components: readonly object[], dependencies: readonly object[] }} installed
 */
export function billOfMaterials(installed, root, packages, { name, version, description }) {
  const { serialNumber: _serial, metadata, components, dependencies, ...rest } = installed
  const { timestamp: _timestamp, component, ...about } = metadata
  const inside = new Map(
    packages.map((path) => {
      const { name: packageName, version: itsVersion } = manifestOf(root, path)
      return [`${packageName}@${itsVersion}`, path]
    }),
  )
  const kept = components.filter((each) => inside.has(each['bom-ref']))
  const lost = [...inside.keys()].filter((ref) => !kept.some((each) => each['bom-ref'] === ref))
  if (lost.length > 0) throw new Error(`npm sbom does not name ${lost.join(', ')}`)
  const self = component['bom-ref']
  return {
    ...rest,
    metadata: {
      ...about,
      component: { ...component, type: 'application', name, version, description, properties: [] },
    },
    components: kept,
    dependencies: [
      { ref: self, dependsOn: kept.map((each) => each['bom-ref']) },
      ...dependencies
        .filter(({ ref }) => inside.has(ref))
        .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => inside.has(each)) })),
    ],
  }
}
