/** examples/deploy: the chart, rendered for those without Helm. */
const VALUES = [
  'config.publish.services[0].service=projectcontour/envoy',
  'config.publish.defaultIssuerName=letsencrypt',
  'config.wildcard.enabled=true',
  'config.wildcard.zone=clusters.example.com',
]
const WITH_WEBHOOKS = [...VALUES, 'mode=enforce', 'config.records.owner=example', 'admission.enabled=true']

const template = (values: readonly string[]): readonly string[] => [
  'template',
  'seamark',
  'charts/seamark',
  '--namespace',
  'seamark',
  ...values.flatMap((value) => ['--set', value]),
]

interface Plain {
  /** Of Helm, in the root of the project. */
  readonly argv: readonly string[]
  readonly about: string
}

export const PLAIN_MANIFESTS = {
  'seamark.yaml': {
    argv: template(VALUES),
    about: `# Seamark in a cluster with Contour, cert-manager and ExternalDNS. Change \`image:\`; it starts in observe mode and writes
# nothing until \`mode: enforce\`, with an owner id in \`records.owner\`.`,
  },
  'admission.yaml': {
    argv: template(WITH_WEBHOOKS),
    about: `# The same in mode enforce, with the admission webhook: an object that requests a name which \`grants\` do not allow its namespace
# is refused when it is written. Change \`image:\` and \`owner:\`.`,
  },
} as const satisfies Readonly<Record<string, Plain>>

const NAMESPACE = `apiVersion: v1
kind: Namespace
metadata:
  name: seamark
  labels:
    pod-security.kubernetes.io/enforce: restricted
`

/** What Helm says belongs to its release is left out. */
export function plainManifest(file: keyof typeof PLAIN_MANIFESTS, rendered: string): string {
  const body = rendered
    .replaceAll(/^# Source: .*\n/gm, '')
    .replaceAll(/^ *(?:helm\.sh\/chart|app\.kubernetes\.io\/managed-by|checksum\/config): .*\n/gm, '')
    .replaceAll(/^ *annotations:\n *# Settings that need a restart.*\n/gm, '')
    .replaceAll(/\n{2,}/g, '\n')
    .replaceAll(/ +$/gm, '')
  const head = `# Generated from charts/seamark by npm run generate:plain; do not edit.\n`
  return `${head}${PLAIN_MANIFESTS[file].about}\n${NAMESPACE}${body.startsWith('---') ? '' : '---\n'}${body}`
}
