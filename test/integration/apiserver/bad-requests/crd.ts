/** A custom resource whose patterns would never end in a backtracking engine. */
export function crd(name: string, pattern?: string) {
  const [plural = '', ...group] = name.split('.')
  const runaways = { plus: '^(a+)+$', or: '^(a|aa)+$', star: '^(([a-z])+.)+[A-Z]([a-z])+$' }
  const patterns = pattern === undefined ? runaways : { plus: pattern }
  const strings = Object.entries(patterns).map(([field, text]) => [field, { type: 'string', pattern: text }])
  const spec = {
    type: 'object',
    properties: {
      ...Object.fromEntries(strings),
      length: { type: 'integer', minimum: 0, maximum: 1000 },
      spare: { type: 'integer' },
      knots: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
    },
    'x-kubernetes-validations': [{ rule: '!has(self.spare) || self.spare <= self.length' }],
  }
  const openAPIV3Schema = { type: 'object', properties: { spec } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name },
    spec: {
      group: group.join('.'),
      scope: 'Namespaced',
      names: { plural, singular: plural.replace(/s$/, ''), kind: 'Rope', listKind: 'RopeList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  }
}

export function rope(spec: unknown, name = 'rope'): string {
  return JSON.stringify({ apiVersion: 'bad.test/v1', kind: 'Rope', metadata: { name }, spec })
}
