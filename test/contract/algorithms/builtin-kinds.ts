/** Built-in kinds for the differential scripts: decoding by the embedded server, and random bodies. */
import {
  type ApiObject,
  applyBuiltinDefaults,
  findBuiltinKind,
  type JsonObject,
  normalizeBuiltin,
  validateKind,
} from '@seamark/apiserver/testing'
import type { Obj } from '@seamark/kube/object'
import fc from 'fast-check'
import type { Body, ModelKind, Step } from './model-server.ts'

export interface BuiltinSubject {
  model: ModelKind
  collection: string
  body: fc.Arbitrary<Body>
  /** Parts of a body, for patches. */
  patch: fc.Arbitrary<Body>
}

function modelKind(group: string, version: string, kind: string): ModelKind {
  const builtin = findBuiltinKind(group, version, kind)!
  const id = group === '' ? builtin.plural : `${builtin.plural}.${group}`
  const decode = (object: Obj): Obj => {
    const fields = object as unknown as JsonObject
    normalizeBuiltin(builtin.schema, fields)
    applyBuiltinDefaults(builtin.schema, fields)
    return object
  }
  return {
    apiVersion: group === '' ? version : `${group}/${version}`,
    kind,
    schema: builtin.schema,
    hasStatus: builtin.subresources.includes('status'),
    statusResets: ['spec'],
    decode,
    afterApply: decode,
    validate: (object, old) =>
      validateKind(id, object as unknown as ApiObject, old as unknown as ApiObject | undefined),
  }
}

const letter = fc.constantFrom('a', 'b', 'c')
const strings = fc.dictionary(letter, letter, { maxKeys: 3 })

function some(shape: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Body> {
  return fc.record(shape, { requiredKeys: [] })
}

function subject(
  group: string,
  version: string,
  kind: string,
  plural: string,
  content: fc.Arbitrary<Body>,
  patch: fc.Arbitrary<Body> = content,
): BuiltinSubject {
  const model = modelKind(group, version, kind)
  const metadata = some({ labels: strings, annotations: strings })
  return {
    model,
    collection: `${group === '' ? '/api' : `/apis/${group}`}/${version}/namespaces/default/${plural}`,
    body: fc.tuple(metadata, content).map(([meta, rest]) => ({
      apiVersion: model.apiVersion,
      kind,
      metadata: { name: 'subject', namespace: 'default', ...meta },
      ...rest,
    })),
    patch: fc.tuple(metadata, patch).map(([meta, rest]) => ({ metadata: meta, ...rest })),
  }
}

const configMap = some({
  data: strings,
  binaryData: fc
    .dictionary(letter, fc.constantFrom('YQ==', 'Yg=='), { maxKeys: 1 })
    .map((data) => Object.fromEntries(Object.entries(data).map(([key, value]) => [`bin-${key}`, value]))),
})

const secret = some({ data: fc.dictionary(letter, fc.constantFrom('YQ==', 'Yg=='), { maxKeys: 2 }) })

const servicePort = fc
  .tuple(
    fc.integer({ min: 80, max: 82 }),
    some({ targetPort: fc.oneof(fc.constant(8080), fc.constant('web')), appProtocol: letter }),
  )
  .map(([port, rest]) => ({ name: `p${port}`, port, ...rest }))
const servicePorts = fc.uniqueArray(servicePort, { minLength: 1, maxLength: 3, selector: ({ port }) => port })
/** Headless: nothing is allocated. */
const service = fc
  .tuple(
    servicePorts,
    some({
      selector: strings,
      publishNotReadyAddresses: fc.boolean(),
      sessionAffinity: fc.constantFrom('None', 'ClientIP'),
    }),
  )
  .map(([ports, rest]) => ({
    spec: {
      clusterIP: 'None',
      clusterIPs: ['None'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      ports,
      ...rest,
    },
  }))
const servicePatch = fc
  .tuple(
    fc.option(servicePorts, { nil: undefined }),
    some({ selector: strings, publishNotReadyAddresses: fc.boolean() }),
  )
  .map(([ports, rest]) => ({ spec: { ...(ports !== undefined && { ports }), ...rest } }))

const env = fc.uniqueArray(fc.record({ name: letter, value: letter }), { maxLength: 3, selector: ({ name }) => name })
const container = fc
  .tuple(
    letter,
    some({
      args: fc.array(letter, { maxLength: 2 }),
      env,
      ports: fc.uniqueArray(fc.record({ containerPort: fc.integer({ min: 80, max: 82 }) }), {
        maxLength: 2,
        selector: ({ containerPort }) => containerPort,
      }),
      readinessProbe: some({ periodSeconds: fc.integer({ min: 1, max: 3 }) }).map((probe) => ({
        httpGet: { port: 80 },
        ...probe,
      })),
      resources: some({ limits: fc.constant({ cpu: '1' }) }),
    }),
  )
  .map(([name, rest]) => ({ name, image: `registry.example/${name}:1`, ...rest }))
const containers = fc.uniqueArray(container, { minLength: 1, maxLength: 2, selector: ({ name }) => name })
const deployment = fc
  .tuple(
    containers,
    some({
      replicas: fc.integer({ min: 0, max: 2 }),
      paused: fc.boolean(),
      minReadySeconds: fc.integer({ min: 0, max: 2 }),
    }),
    fc.array(letter, { maxLength: 1 }),
  )
  .map(([list, rest, volumes]) => ({
    spec: {
      ...rest,
      selector: { matchLabels: { app: 'x' } },
      template: {
        metadata: { labels: { app: 'x' } },
        spec: { containers: list, volumes: volumes.map((name) => ({ name, configMap: { name } })) },
      },
    },
  }))
const deploymentPatch = fc
  .tuple(containers, some({ replicas: fc.integer({ min: 0, max: 2 }), paused: fc.boolean() }))
  .map(([list, rest]) => ({ spec: { ...rest, template: { spec: { containers: list } } } }))

const path = fc.tuple(letter, letter).map(([at, name]) => ({
  path: `/${at}`,
  pathType: 'Prefix',
  backend: { service: { name, port: { number: 80 } } },
}))
const rule = fc
  .tuple(letter, fc.array(path, { minLength: 1, maxLength: 2 }))
  .map(([host, paths]) => ({ host: `${host}.example`, http: { paths } }))
const ingress = fc
  .tuple(
    fc.array(rule, { minLength: 1, maxLength: 2 }),
    some({
      ingressClassName: letter,
      tls: fc.array(some({ secretName: letter, hosts: fc.constant(['a.example']) }), { maxLength: 1 }),
    }),
  )
  .map(([rules, rest]) => ({ spec: { rules, ...rest } }))

export const SUBJECTS: Record<string, BuiltinSubject> = {
  ConfigMap: subject('', 'v1', 'ConfigMap', 'configmaps', configMap),
  Secret: subject('', 'v1', 'Secret', 'secrets', secret),
  Service: subject('', 'v1', 'Service', 'services', service, servicePatch),
  Deployment: subject('apps', 'v1', 'Deployment', 'deployments', deployment, deploymentPatch),
  Ingress: subject('networking.k8s.io', 'v1', 'Ingress', 'ingresses', ingress),
}

const manager = fc.constantFrom('one', 'two', 'three')

export function builtinScript({ body, patch }: BuiltinSubject): fc.Arbitrary<Step[]> {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('apply' as const), manager, force: fc.boolean(), body }),
    fc.record({ kind: fc.constant('update' as const), manager, body }),
    fc.record({ kind: fc.constant('merge' as const), manager, body: patch }),
    fc.record({ kind: fc.constant('strategic' as const), manager, body: patch }),
  )
  const first = fc.oneof(
    fc.record({ kind: fc.constant('create' as const), manager, body }),
    fc.record({ kind: fc.constant('apply' as const), manager, force: fc.constant(false), body }),
  )
  return fc
    .tuple(first, fc.array(step as fc.Arbitrary<Step>, { minLength: 2, maxLength: 6 }))
    .map(([start, rest]) => [start, ...rest])
}
