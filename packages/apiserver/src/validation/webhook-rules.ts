/** Configurations of admission webhooks. */
import { duplicateValue, invalidValue, requiredValue } from './metadata.ts'
import { checkQualifiedName, checkSubdomain } from './names.ts'
import { type ApiObject, asRecords, asStrings, getPath, isRecord, type Json } from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'
import { count, labelSelector, named, oneOf, oneOfIfSet, text } from './field-rules.ts'

const reviewVersions = ['v1', 'v1beta1']
const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE']
const urlFormat = 'desired format: https://host[/path]'

/** The error of a match condition; undefined when it compiles. An argument, because it is loaded with the engine. */
type ExplainCondition = (expression: string) => string | undefined

export function validateWebhooks(object: ApiObject, explain: ExplainCondition): Cause[] {
  const names = new Set<string>()
  return asRecords(object['webhooks']).flatMap((webhook, index) => {
    const at = `webhooks[${index}]`
    const name = text(webhook['name'])
    const causes = webhookRules(webhook, at, explain)
    if (names.has(name)) causes.push(duplicateValue(`${at}.name`, name))
    names.add(name)
    return causes
  })
}

function webhookRules(webhook: Json, at: string, explain: ExplainCondition): Cause[] {
  const seconds = webhook['timeoutSeconds']
  const isBadTime = typeof seconds === 'number' && (seconds < 1 || seconds > 30)
  const why = 'the timeout value must be between 1 and 30 seconds'
  return [
    ...fullName(text(webhook['name']), `${at}.name`),
    ...versions(webhook, at),
    ...asRecords(webhook['rules']).flatMap((rule, index) => ruleOf(rule, `${at}.rules[${index}]`)),
    ...oneOfIfSet(`${at}.failurePolicy`, webhook['failurePolicy'], ['Fail', 'Ignore']),
    ...oneOfIfSet(`${at}.matchPolicy`, webhook['matchPolicy'], ['Equivalent', 'Exact']),
    ...sideEffects(webhook, at),
    ...(isBadTime ? [invalidValue(`${at}.timeoutSeconds`, seconds, why)] : []),
    ...labelSelector(`${at}.namespaceSelector`, webhook['namespaceSelector']),
    ...labelSelector(`${at}.objectSelector`, webhook['objectSelector']),
    ...client(webhook['clientConfig'], `${at}.clientConfig`),
    ...oneOfIfSet(`${at}.reinvocationPolicy`, webhook['reinvocationPolicy'], ['IfNeeded', 'Never']),
    ...conditions(webhook, `${at}.matchConditions`, explain),
  ]
}

function fullName(name: string, field: string): Cause[] {
  if (name === '') return [requiredValue(field)]
  const causes = named(checkSubdomain, field, name)
  if (causes.length > 0 || name.split('.').length >= 3) return causes
  return [invalidValue(field, name, 'should be a domain with at least three segments separated by dots')]
}

function versions(webhook: Json, at: string): Cause[] {
  const field = `${at}.admissionReviewVersions`
  const given = asStrings(webhook['admissionReviewVersions'])
  if (given.length === 0) return [requiredValue(field, `must specify one of ${reviewVersions.join(', ')}`)]
  const isKnown = given.some((version) => reviewVersions.includes(version))
  return isKnown ? [] : [invalidValue(field, given, `must include at least one of ${reviewVersions.join(', ')}`)]
}

function sideEffects(webhook: Json, at: string): Cause[] {
  const allowed = ['None', 'NoneOnDryRun']
  return text(webhook['sideEffects']) === ''
    ? [requiredValue(`${at}.sideEffects`, `must specify one of ${allowed.join(', ')}`)]
    : oneOf(`${at}.sideEffects`, webhook['sideEffects'], allowed)
}

/** `*` matches everything: other values beside it are errors. */
function starAlone(values: readonly string[], field: string, what: string): Cause[] {
  return values.length > 1 && values.includes('*')
    ? [invalidValue(field, values, `if '*' is present, must not specify other ${what}`)]
    : []
}

function ruleOf(rule: Json, at: string): Cause[] {
  const list = (key: string): string[] => asStrings(rule[key])
  const verbs = list('operations')
  const causes: Cause[] = verbs.length === 0 ? [requiredValue(`${at}.operations`)] : []
  causes.push(...starAlone(verbs, `${at}.operations`, 'operations'))
  verbs.forEach((verb, index) => causes.push(...oneOf(`${at}.operations[${index}]`, verb, operations)))
  for (const [key, what] of [
    ['apiGroups', 'API groups'],
    ['apiVersions', 'API versions'],
  ] as const) {
    if (list(key).length === 0) causes.push(requiredValue(`${at}.${key}`))
    causes.push(...starAlone(list(key), `${at}.${key}`, what))
  }
  list('apiVersions').forEach((version, index) => {
    if (version === '') causes.push(requiredValue(`${at}.apiVersions[${index}]`))
  })
  return [
    ...causes,
    ...resources(list('resources'), `${at}.resources`),
    ...oneOfIfSet(`${at}.scope`, rule['scope'], ['*', 'Cluster', 'Namespaced']),
  ]
}

function resources(given: readonly string[], field: string): Cause[] {
  if (given.length === 0) return [requiredValue(field)]
  const [whole, parts] = [new Set<string>(), new Set<string>()]
  const causes: Cause[] = []
  given.forEach((entry, index) => {
    const at = `${field}[${index}]`
    if (entry === '') {
      causes.push(requiredValue(at))
      return
    }
    const slash = entry.indexOf('/')
    if (slash < 0) return
    const [resource, part] = [entry.slice(0, slash), entry.slice(slash + 1)]
    const cover = whole.has(resource) ? `${resource}/*` : parts.has(part) ? `*/${part}` : undefined
    if (cover !== undefined) causes.push(invalidValue(at, entry, `if '${cover}' is present, must not specify ${entry}`))
    if (part === '*') whole.add(resource)
    if (resource === '*') parts.add(part)
  })
  if (given.length > 1 && given.includes('*/*'))
    causes.push(invalidValue(field, given, "if '*/*' is present, must not specify other resources"))
  if (given.includes('*') && given.some((entry) => entry !== '*' && !entry.includes('/'))) {
    const why = "if '*' is present, must not specify other resources without subresources"
    causes.push(invalidValue(field, given, why))
  }
  return causes
}

function client(config: unknown, at: string): Cause[] {
  const [url, service] = [getPath(config, 'url'), getPath(config, 'service')]
  if ((url === undefined) === (service === undefined))
    return [requiredValue(at, 'exactly one of url or service is required')]
  return isRecord(service) ? serviceRules(service, `${at}.service`) : urlRules(text(url), `${at}.url`)
}

function urlRules(value: string, field: string): Cause[] {
  let url: URL
  try {
    url = new URL(value)
  } catch {
    return [
      requiredValue(
        field,
        `url must be a valid URL: parse ${JSON.stringify(value)}: invalid URI for request; ${urlFormat}`,
      ),
    ]
  }
  const scheme = url.protocol.slice(0, -1)
  const user = url.password === '' ? url.username : `${url.username}:${url.password}`
  const refuse = (part: string, why: string): Cause[] =>
    part === '' ? [] : [invalidValue(field, part, `${why} are not permitted in the URL`)]
  return [
    ...(scheme === 'https'
      ? []
      : [invalidValue(field, scheme, `'https' is the only allowed URL scheme; ${urlFormat}`)]),
    ...(url.host === '' ? [invalidValue(field, '', `host must be specified; ${urlFormat}`)] : []),
    ...(user === '' ? [] : [invalidValue(field, user, 'user information is not permitted in the URL')]),
    ...refuse(url.hash.slice(1), 'fragments'),
    ...refuse(url.search.slice(1), 'query parameters'),
  ]
}

function serviceRules(service: Json, at: string): Cause[] {
  const path = service['path']
  const port = count(service['port'] ?? 443)
  const causes: Cause[] = ['name', 'namespace'].flatMap((key) =>
    text(service[key]) === '' ? [requiredValue(`${at}.${key}`)] : [],
  )
  if (port < 1 || port > 65_535) {
    const why = 'port is not valid: must be between 1 and 65535, inclusive'
    causes.push(invalidValue(`${at}.port`, port, why))
  }
  if (typeof path !== 'string' || path === '' || path === '/') return causes
  if (!path.startsWith('/')) causes.push(invalidValue(`${at}.path`, path, "must start with a '/'"))
  const steps = path.slice(1).replace(/\/$/, '').split('/')
  steps.forEach((step, index) => {
    if (step === '') causes.push(invalidValue(`${at}.path`, path, `segment[${index}] may not be empty`))
    else
      for (const why of checkSubdomain(step)) causes.push(invalidValue(`${at}.path`, path, `segment[${index}]: ${why}`))
  })
  return causes
}

function conditions(webhook: Json, at: string, explain: ExplainCondition): Cause[] {
  const names = new Set<string>()
  return asRecords(webhook['matchConditions']).flatMap((condition, index) => {
    const here = `${at}[${index}]`
    const [name, expression] = [text(condition['name']), text(condition['expression']).trim()]
    const problem = expression === '' ? undefined : explain(expression)
    const causes: Cause[] = []
    if (expression === '') causes.push(requiredValue(`${here}.expression`))
    else if (problem !== undefined) causes.push(invalidValue(`${here}.expression`, expression, problem))
    if (name === '') return [...causes, requiredValue(`${here}.name`)]
    causes.push(...named(checkQualifiedName, `${here}.name`, name))
    if (names.has(name)) causes.push(duplicateValue(`${here}.name`, name))
    names.add(name)
    return causes
  })
}
