/** The life cycle of a custom resource: schema, defaults, pruning, status, scale, versions, rules. */
import { asTable, get, patch, post, put, remove, watch, type Step } from './step.ts'

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const boats = '/apis/diff.test/v1/namespaces/diff/boats'
const boat = (name: string, spec: unknown, more: object = {}) => ({
  apiVersion: 'diff.test/v1',
  kind: 'Boat',
  metadata: { name },
  spec,
  ...more,
})

const schema = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['length'],
      properties: {
        length: { type: 'integer', minimum: 1, maximum: 500 },
        flag: { type: 'string', enum: ['red', 'green'], default: 'green' },
        callSign: { type: 'string', pattern: '^[A-Z]{4}$', maxLength: 4 },
        port: { 'x-kubernetes-int-or-string': true },
        crew: {
          type: 'array',
          maxItems: 3,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: { type: 'string' }, rank: { type: 'string', default: 'sailor' } },
          },
        },
        harbours: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
        cargo: { type: 'object', additionalProperties: { type: 'integer' } },
        anything: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        replicas: { type: 'integer' },
        note: { type: 'string', nullable: true },
      },
      'x-kubernetes-validations': [
        { rule: "!has(self.callSign) || self.callSign != 'SINK'", message: 'no boat is called SINK' },
        { rule: 'self.length >= oldSelf.length', message: 'boats do not shrink' },
      ],
    },
    status: {
      type: 'object',
      properties: { replicas: { type: 'integer' }, afloat: { type: 'boolean' } },
    },
  },
}

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'boats.diff.test' },
  spec: {
    group: 'diff.test',
    scope: 'Namespaced',
    names: { plural: 'boats', singular: 'boat', kind: 'Boat', listKind: 'BoatList', shortNames: ['bt'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: schema },
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        additionalPrinterColumns: [
          { name: 'Length', type: 'integer', jsonPath: '.spec.length' },
          { name: 'Flag', type: 'string', jsonPath: '.spec.flag', priority: 1 },
        ],
      },
      { name: 'v1alpha1', served: true, storage: false, deprecated: true, schema: { openAPIV3Schema: schema } },
      { name: 'v0', served: false, storage: false, schema: { openAPIV3Schema: schema } },
    ],
  },
}

const withSpec = (change: object) => ({ ...definition, spec: { ...definition.spec, ...change } })
const withSchema = (openAPIV3Schema: unknown) =>
  withSpec({ versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }] })

export const customSteps: readonly Step[] = [
  post(crds, { ...definition, metadata: { name: 'ships.diff.test' } }),
  post(crds, withSpec({ versions: [] })),
  post(crds, withSpec({ scope: 'Everywhere' })),
  post(crds, withSchema({ type: 'object', properties: { spec: { properties: { a: { type: 'string' } } } } })),
  post(crds, withSchema({ type: 'object', properties: { spec: { type: 'stuff' } } })),
  post(crds, withSchema({ type: 'object', properties: { spec: { type: 'array' } } })),
  post(crds, definition),
  get(`${crds}/boats.diff.test`, { until: ({ text }) => /"type":"Established","status":"True"/.test(text) }),
  get('/apis/diff.test/v1', { until: ({ status }) => status === 200 }),
  get('/apis/diff.test'),
  get('/apis/diff.test/v0/boats'),
  get(boats),

  post(boats, boat('a', { length: 10 })),
  post(
    boats,
    boat('full', {
      length: 20,
      flag: 'red',
      callSign: 'ABCD',
      port: 'http',
      crew: [{ name: 'ann' }, { name: 'bob', rank: 'cook' }],
      harbours: ['x', 'y'],
      cargo: { fish: 3 },
      anything: { goes: [1, { deep: true }] },
      note: null,
      unknown: 'dropped',
    }),
  ),
  post(`${boats}?fieldValidation=Strict`, boat('strict', { length: 1, unknown: 1, crew: [{ name: 'a', x: 1 }] })),
  post(boats, boat('bad', {})),
  post(boats, boat('bad', { length: 'ten' })),
  post(boats, boat('bad', { length: 0 })),
  post(boats, boat('bad', { length: 501 })),
  post(boats, boat('bad', { length: 1.5 })),
  post(boats, boat('bad', { length: 1, flag: 'blue' })),
  post(boats, boat('bad', { length: 1, callSign: 'abcd' })),
  post(boats, boat('bad', { length: 1, callSign: 'SINK' })),
  post(boats, boat('bad', { length: 1, port: true })),
  post(boats, boat('bad', { length: 1, crew: [{ rank: 'cook' }] })),
  post(boats, boat('bad', { length: 1, crew: [{ name: 'a' }, { name: 'a' }] })),
  post(boats, boat('bad', { length: 1, harbours: ['x', 'x'] })),
  post(boats, boat('bad', { length: 1, cargo: { fish: 'many' } })),
  post(boats, boat('bad', { length: 1, crew: {} })),
  post(boats, boat('bad', { length: null })),
  post(boats, { apiVersion: 'diff.test/v1', kind: 'Boat', metadata: { name: 'bad' } }),
  post(boats, boat('Bad', { length: 1 })),
  post('/apis/diff.test/v1alpha1/namespaces/diff/boats', {
    ...boat('old', { length: 5 }),
    apiVersion: 'diff.test/v1alpha1',
  }),
  get('/apis/diff.test/v1alpha1/namespaces/diff/boats/a'),
  get(`${boats}/full`, { as: 'full' }),
  get(boats, asTable),
  get('/apis/diff.test/v1/boats?fieldSelector=spec.length=10'),
  put(`${boats}/full`, (seen) => ({ ...seen('full'), status: { afloat: true } })),
  put(`${boats}/full`, () => boat('full', { length: 30 })),
  put(`${boats}/full/status`, (seen) => ({
    ...seen('full'),
    spec: { length: 99 },
    status: { afloat: true, extra: 1 },
  })),
  patch('merge', `${boats}/full/status`, { status: { afloat: 'yes' } }),
  patch('merge', `${boats}/full`, { spec: { length: 19 } }),
  patch('merge', `${boats}/full`, { spec: { length: 21, flag: null } }),
  patch('merge', `${boats}/full`, { metadata: { labels: { l: 'l' } } }),
  patch('strategic', `${boats}/full`, { spec: { length: 22 } }),
  patch('json', `${boats}/full`, [{ op: 'add', path: '/spec/crew/-', value: { name: 'cyd' } }]),
  get(`${boats}/full/scale`),
  put(`${boats}/full/scale`, () => ({
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name: 'full', namespace: 'diff' },
    spec: { replicas: 4 },
  })),
  patch('merge', `${boats}/full/scale`, { spec: { replicas: -1 } }),
  patch('merge', `${boats}/full/scale`, { spec: { replicas: 2 } }),
  get(`${boats}/full/nosuch`),
  patch(
    'apply',
    `${boats}/applied?fieldManager=one`,
    boat('applied', { length: 5, crew: [{ name: 'ann' }], harbours: ['x'] }),
  ),
  patch(
    'apply',
    `${boats}/applied?fieldManager=two`,
    boat('applied', { length: 5, crew: [{ name: 'bob', rank: 'cook' }], harbours: ['y'] }),
  ),
  patch('apply', `${boats}/applied?fieldManager=two`, boat('applied', { length: 6 })),
  patch('apply', `${boats}/applied?fieldManager=one`, boat('applied', { length: 5, harbours: ['x', 'z'] })),
  patch('apply', `${boats}/applied?fieldManager=one`, boat('applied', { length: 5, unknown: 1 })),
  patch('apply', `${boats}/applied/status?fieldManager=one`, {
    apiVersion: 'diff.test/v1',
    kind: 'Boat',
    status: { afloat: true },
  }),
  watch(`${boats}?watch=true&fieldSelector=metadata.name=applied`, 1),
  remove(`${boats}/applied`),
  remove(boats),
  patch('merge', `${crds}/boats.diff.test`, { spec: { scope: 'Cluster' } }),
  remove(`${crds}/boats.diff.test`),
  get('/apis/diff.test/v1', { until: ({ status }) => status === 404 }),
]
