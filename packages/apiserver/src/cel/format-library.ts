/** `format.…()`: named string formats, with the error messages of kube-apiserver. */
import type { Environment } from '@marcbachmann/cel-js'
import {
  type Check,
  checkDns1035Label,
  checkLabel,
  checkLabelValue,
  checkQualifiedName,
  checkSubdomain,
  maskTrailingDash,
} from '../validation/names.ts'
import { findFormat } from '../schema/formats.ts'
import { spend } from './budget.ts'
import { Namespace, OPTIONALS } from './library-kit.ts'
import { parseUrl } from './url.ts'

/** Characters that a format check reads per step of the budget. */
const CHARS_PER_STEP = 50

class FormatNamespace extends Namespace {
  readonly kind = 'format'
}

class NamedFormat {
  readonly name: string
  readonly check: Check

  constructor(name: string, check: Check) {
    this.name = name
    this.check = check
  }
}

const prefixOf =
  (check: Check): Check =>
  (text) =>
    check(maskTrailingDash(text))

/** A string format of schemas, whose error message is one sentence. */
const schemaFormat =
  (name: string, problem: string): Check =>
  (text) =>
    findFormat(name)!(text) ? [] : [problem]

const CHECKS: Readonly<Record<string, Check>> = {
  dns1123Label: checkLabel,
  dns1123Subdomain: checkSubdomain,
  dns1035Label: checkDns1035Label,
  qualifiedName: checkQualifiedName,
  dns1123LabelPrefix: prefixOf(checkLabel),
  dns1123SubdomainPrefix: prefixOf(checkSubdomain),
  dns1035LabelPrefix: prefixOf(checkDns1035Label),
  labelValue: checkLabelValue,
  uri: (text) => (parseUrl(text) === undefined ? [`parse ${JSON.stringify(text)}: invalid URI for request`] : []),
  uuid: schemaFormat('uuid', 'does not match the UUID format'),
  byte: schemaFormat('byte', 'invalid base64'),
  date: schemaFormat('date', 'invalid date'),
  datetime: schemaFormat('datetime', 'invalid datetime'),
}

const FORMATS: ReadonlyMap<string, NamedFormat> = new Map(
  Object.entries(CHECKS).map(([name, check]) => [name, new NamedFormat(name, check)]),
)

export function registerFormats(env: Environment): void {
  const type = 'kubernetes.NamedFormat'
  env
    .registerType('FormatNamespace', FormatNamespace)
    .registerConstant('format', 'FormatNamespace', new FormatNamespace('FormatNamespace'))
  env.registerType(type, NamedFormat)
  for (const [name, format] of FORMATS) env.registerFunction(`FormatNamespace.${name}(): ${type}`, () => format)
  env.registerFunction('FormatNamespace.named(string): optional', (_: unknown, name: string) => {
    const format = FORMATS.get(name)
    return format === undefined ? OPTIONALS.none() : OPTIONALS.of(format)
  })
  env.registerOperator(`${type} == ${type}`, (a: NamedFormat, b: NamedFormat) => a.name === b.name)
  env.registerFunction(`${type}.validate(string): optional`, (format: NamedFormat, text: string) => {
    if (!spend(text.length / CHARS_PER_STEP)) return OPTIONALS.none()
    const problems = format.check(text)
    return problems.length === 0 ? OPTIONALS.none() : OPTIONALS.of(problems)
  })
}
