import { describe, expect, it } from 'vitest'
import { CONFIG_API_VERSION, type ConfigInputs, listSettings, loadConfig, valueAt } from './config.ts'
import { publishOptions, unified } from './publish/options.ts'
import { wildcardDefaults, wildcardOptions } from './wildcard/options.ts'

const head = `apiVersion: ${CONFIG_API_VERSION}\nkind: ManagerConfiguration\n`

function load(inputs: ConfigInputs) {
  const result = loadConfig(inputs)
  if (!result.ok) throw new Error(result.faults.join('; '))
  return result
}

describe('the settings', () => {
  it('each have a description', () => {
    expect(listSettings().filter(({ description }) => description === '')).toEqual([])
  })
})

describe('the configuration of the manager', () => {
  it('without anything observes, and publishes as `seamark run` does', () => {
    const { config } = load({})
    expect(config.mode).toBe('observe')
    expect(publishOptions(config.publish)).toEqual(unified)
    expect(wildcardOptions(config.wildcard)).toEqual(wildcardDefaults)
  })

  it('flags win over the environment, the environment over the file, the file over defaults', () => {
    const file = `${head}mode: enforce\npublish:\n  namePrefix: file-\n  ingressClassName: file\n  prune: false\n`
    const env = {
      SEAMARK_PUBLISH_NAME_PREFIX: 'env-',
      SEAMARK_PUBLISH_INGRESS_CLASS_NAME: 'env',
      SEAMARK_WILDCARD_ZONE: '',
    }
    const { config, origins } = load({ file, env, flags: { 'publish-name-prefix': 'flag-' } })
    expect(config).toMatchObject({
      mode: 'enforce',
      publish: { namePrefix: 'flag-', ingressClassName: 'env', prune: false },
    })
    expect(
      ['publish.namePrefix', 'publish.ingressClassName', 'publish.prune', 'wildcard.zone'].map((path) =>
        origins.get(path),
      ),
    ).toEqual(['flag', 'environment', 'file', 'default'])
  })

  it('reads lists, switches, numbers and durations from text', () => {
    const env = {
      SEAMARK_PUBLISH_SOURCES: 'HTTPProxy, Ingress',
      SEAMARK_PUBLISH_PRUNE: 'false',
      SEAMARK_WILDCARD_TTL: '30',
      SEAMARK_WILDCARD_REMOVAL_DELAY: '1m30s',
    }
    const { config } = load({ env })
    expect(config.publish).toMatchObject({ sources: ['HTTPProxy', 'Ingress'], prune: false })
    expect(wildcardOptions(config.wildcard)).toMatchObject({ ttlSeconds: 30, removalDelayMs: 90_000 })
  })

  it('reads a list of objects from a repeated flag, or from a variable as a list', () => {
    const one = '{ name: a, type: memory, zones: [a.test] }'
    const two = '{"name": "b", "type": "memory", "zones": ["b.test"]}'
    const wanted = { records: { providers: [{ name: 'a' }, { name: 'b' }], zones: ['a.test'] }, pause: true }
    const flags = { 'records-providers': [one, two], 'records-zones': 'a.test', pause: true }
    expect(load({ flags }).config).toMatchObject(wanted)
    const env = {
      SEAMARK_RECORDS_PROVIDERS: `[${one}, ${two}]`,
      SEAMARK_RECORDS_ZONES: 'a.test',
      SEAMARK_PAUSE: 'true',
    }
    expect(load({ env }).config).toMatchObject(wanted)
    for (const bad of ['{', 'text', '[1]', '{ name: a, type: memory, zones: [a.test], secret: x }'])
      expect(loadConfig({ flags: { 'records-providers': [bad] } }).ok, bad).toBe(false)
  })

  it('repeats no text that may have a password, from a variable, a flag or a file', () => {
    const text = '{ name: a, url: "https://user:hunter2@dns.example.com", '
    const faults = [
      loadConfig({ env: { SEAMARK_RECORDS_PROVIDERS: text } }),
      loadConfig({ flags: { 'records-providers': [text] } }),
      loadConfig({ env: { SEAMARK_RECORDS_PROVIDERS: 'https://user:hunter2@dns.example.com' } }),
      loadConfig({ file: `${head}records:\n  providers:\n    - ${text}\n` }),
    ].map((result) => (result.ok ? ['none'] : result.faults))
    expect(faults.flat()).toEqual([
      'SEAMARK_RECORDS_PROVIDERS: its text, which is not repeated here, is no object in YAML or JSON, or list of them',
      '--records-providers: its text, which is not repeated here, is no object in YAML or JSON, or list of them',
      'SEAMARK_RECORDS_PROVIDERS: its text, which is not repeated here, is no object in YAML or JSON, or list of them',
      expect.stringMatching(/^configuration: .* at line \d+, column \d+$/),
    ])
    expect(faults.flat().join()).not.toContain('hunter2')
  })

  it('refuses a file with tags that are not YAML, or with several documents, in one line', () => {
    const head = 'apiVersion: config.seamark.io/v1alpha1\nkind: ManagerConfiguration\n'
    for (const [file, fault] of [
      [`${head}namespace: !!js/function "secret"\n`, /^configuration: Unresolved tag: [^\n]*line 3/],
      [`${head}namespace: !vault secret\n`, /^configuration: Unresolved tag: !vault at line 3, column 12$/],
      [`${head}---\n${head}`, /^configuration: has several documents/],
    ] as const) {
      const result = loadConfig({ file })
      expect(result.ok ? [] : result.faults).toEqual([expect.stringMatching(fault)])
      expect(JSON.stringify(result)).not.toContain('secret"')
    }
  })

  it.each(['not a zone', '*.example.com', 'bücher.example', 'a..b', '.'])(
    'refuses the zone %j of dns.zones',
    (zone) => {
      const result = loadConfig({ file: `${head}dns: { listen: [":53"], zones: ["${zone}"] }\n` })
      expect(result.ok ? [] : result.faults).toEqual([expect.stringMatching(/^dns\.zones\.0: is no zone: /)])
    },
  )

  it('refuses filters and zones that are none', () => {
    const broken = (records: object) => loadConfig({ file: `${head}records: ${JSON.stringify(records)}\n` })
    expect(broken({ dnsEndpoints: { labelFilter: 'a=b, (' } }).ok).toBe(false)
    expect(broken({ dnsEndpoints: { annotationFilter: '=' } }).ok).toBe(false)
    expect(broken({ zones: ['a..b'] }).ok).toBe(false)
    expect(broken({ zones: ['a.test'], dnsEndpoints: { labelFilter: 'a in (b,c),!d' } }).ok).toBe(true)
  })

  it.each([
    ['publish.prun', `${head}publish:\n  prun: true\n`],
    ['apiVersion', 'mode: enforce\n'],
    ['apiVersion', `apiVersion: v2\nkind: ManagerConfiguration\n`],
    ['mapping', '- a\n'],
    ['configuration', 'a: [\n'],
    ['wildcard.removalDelay', `${head}wildcard:\n  removalDelay: soon\n`],
    ['wildcard.nodeSelector', `${head}wildcard:\n  nodeSelector: a b\n`],
    ['publish.services.0.service', `${head}publish:\n  services: [{service: lb}]\n`],
  ])('names what is wrong: %s', (word, file) => {
    const result = loadConfig({ file })
    expect(result.ok).toBe(false)
    if (!result.ok) expect(result.faults.join('\n')).toContain(word.split('.').at(-1))
  })

  it('a document never reaches the prototype', () => {
    expect(loadConfig({ file: `${head}__proto__: {mode: enforce}\n` }).ok).toBe(false)
    expect({}).not.toHaveProperty('mode')
  })

  it('refuses a flag that is no value of its kind', () => {
    expect(loadConfig({ flags: { 'publish-prune': 'perhaps' } })).toMatchObject({ ok: false })
    expect(loadConfig({ env: { SEAMARK_WILDCARD_TTL: 'x' } })).toMatchObject({ ok: false })
  })

  it('every setting has a flag, a variable and a value of its own', () => {
    const settings = listSettings()
    const { config } = load({})
    expect(new Set(settings.map(({ flag }) => flag)).size).toBe(settings.length)
    for (const { path } of settings) expect(valueAt(config, path)).toBeDefined()
    expect(settings.find(({ path }) => path === 'publish.hostnameTargets')).toMatchObject({
      path: 'publish.hostnameTargets',
      flag: 'publish-hostname-targets',
      variable: 'SEAMARK_PUBLISH_HOSTNAME_TARGETS',
      shape: 'switch',
    })
  })
})

it.each([
  ['fleet', 'installCRDs'],
  ['balance', 'installCrds'],
])('a file with %s.%s, which was replaced, is refused with the setting to use', (part, setting) => {
  const file = `apiVersion: config.seamark.io/v1alpha1\nkind: ManagerConfiguration\n${part}: { ${setting}: true }\n`
  expect(loadConfig({ file })).toEqual({
    ok: false,
    faults: [`${part}.${setting}: is not a setting any more; set installCRDs, which is for all kinds of Seamark`],
  })
})
