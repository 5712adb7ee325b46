/**
 * The syntax of names, label keys and label values, with the error messages of kube-apiserver. Each function returns
 * the errors; an empty list means valid.
 */
const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomain = `${label}(\\.${label})*`
const dns1035 = '[a-z]([-a-z0-9]*[a-z0-9])?'
const qualifiedPart = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const labelValue = `(${qualifiedPart})?`
const configKey = '[-._a-zA-Z0-9]+'

const labelPattern = new RegExp(`^${label}$`)
const subdomainPattern = new RegExp(`^${subdomain}$`)
const dns1035Pattern = new RegExp(`^${dns1035}$`)
const qualifiedPattern = new RegExp(`^${qualifiedPart}$`)
const configKeyPattern = new RegExp(`^${configKey}$`)

export type Check = (value: string) => string[]

function expected(text: string, pattern: string, ...examples: string[]): string {
  const list = examples.map((example) => `'${example}', `).join(' or ')
  return `${text} (e.g. ${list}regex used for validation is '${pattern}')`
}

const byteLength = (value: string): number => Buffer.byteLength(value)

/** RFC 1123 subdomain: the name of most objects. */
export const checkSubdomain: Check = (value) => subdomainProblems(value, 'characters')

/** The same rule has different messages for names and for the prefixes of label keys. */
function subdomainProblems(value: string, unit: 'bytes' | 'characters'): string[] {
  const errors: string[] = []
  if (byteLength(value) > 253) errors.push(`must be no more than 253 ${unit}`)
  if (value.length > 512 || !subdomainPattern.test(value)) {
    errors.push(
      expected(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
        subdomain,
        'example.com',
      ),
    )
  }
  return errors
}

/** RFC 1123 label: namespaces. */
export const checkLabel: Check = (value) => {
  const errors: string[] = []
  if (byteLength(value) > 63) errors.push('must be no more than 63 characters')
  if (value.length > 512 || !labelPattern.test(value)) {
    errors.push(
      value.length <= 512 && subdomainPattern.test(value)
        ? 'must not contain dots'
        : expected(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
            label,
            'my-name',
            '123-abc',
          ),
    )
  }
  return errors
}

/** RFC 1035 label: services. */
export const checkDns1035Label: Check = (value) => {
  const errors: string[] = []
  if (byteLength(value) > 63) errors.push('must be no more than 63 characters')
  if (value.length > 512 || !dns1035Pattern.test(value)) {
    errors.push(
      expected(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
        dns1035,
        'my-name',
        'abc-123',
      ),
    )
  }
  return errors
}

/** One path segment: the minimum requirement of a name, and the only one of RBAC. */
export const checkPathSegment: Check = (value) => {
  if (value === '.' || value === '..') return [`may not be '${value}'`]
  return ['/', '%']
    .filter((character) => value.includes(character))
    .map((character) => `may not contain '${character}'`)
}

/** `prefix/name`: label and annotation keys, finalizers. */
export const checkQualifiedName: Check = (value) => {
  const parts = value.split('/')
  const shape =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
  const examples = ['MyName', 'my.name', '123-abc'] as const
  if (parts.length > 2) {
    return [
      `a valid label key ${expected(shape, qualifiedPart, ...examples)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const errors: string[] = []
  if (parts.length === 2) {
    const prefix = parts[0] as string
    if (prefix === '') errors.push('prefix part must be non-empty')
    else errors.push(...subdomainProblems(prefix, 'bytes').map((problem) => `prefix part ${problem}`))
  }
  const name = parts.at(-1) as string
  if (name === '') errors.push('name part must be non-empty')
  else if (byteLength(name) > 63) errors.push('name part must be no more than 63 bytes')
  if (!qualifiedPattern.test(name)) errors.push(`name part ${expected(shape, qualifiedPart, ...examples)}`)
  return errors
}

export const checkLabelValue: Check = (value) => {
  const errors: string[] = []
  if (byteLength(value) > 63) errors.push('must be no more than 63 bytes')
  if (value !== '' && !qualifiedPattern.test(value)) {
    errors.push(
      expected(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        labelValue,
        'MyValue',
        'my_value',
        '12345',
      ),
    )
  }
  return errors
}

/** Keys of ConfigMap and Secret data, which become file names. */
export const checkConfigKey: Check = (value) => {
  const errors: string[] = []
  if (byteLength(value) > 253) errors.push('must be no more than 253 characters')
  if (!configKeyPattern.test(value)) {
    errors.push(
      expected(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        configKey,
        'key.name',
        'KEY_NAME',
        'key-name',
      ),
    )
  }
  if (value === '.') errors.push("must not be '.'")
  else if (value === '..') errors.push("must not be '..'")
  else if (value.startsWith('..')) errors.push("must not start with '..'")
  return errors
}

/** A generateName is validated as if its trailing dash were a letter, because a suffix follows. */
export function maskTrailingDash(base: string): string {
  return base.length > 1 && base.endsWith('-') ? `${base.slice(0, -2)}a` : base
}

/** Vowels, similar characters and 0, 1, 3 are excluded so that no word is ever generated. */
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789'

/** The base, truncated to 58 characters, and five random characters. `random` is in [0, 1). */
export function generateName(base: string, random: () => number): string {
  let name = base.slice(0, 58)
  for (let count = 0; count < 5; count += 1) name += suffixAlphabet[Math.floor(random() * suffixAlphabet.length)]
  return name
}

/** A version 4 UUID (RFC 9562 §5.4) whose bits come from `random`, which is in [0, 1). */
export function uidFrom(random: () => number): string {
  const bytes = Buffer.alloc(16)
  for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32BE(Math.floor(random() * 2 ** 32), at)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
