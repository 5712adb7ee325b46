/** TSIG keys as BIND's tsig-keygen writes them: `key "name" { algorithm hmac-sha256; secret "base64"; };` */
import { DnsError } from '../error.ts'
import { TsigKey } from './tsig.ts'

/** The keys of a file; `file` is named in errors, the secret never is. Throws BAD_KEY. */
export function parseKeyFile(text: string, file: string): TsigKey[] {
  const plain = text.replaceAll(/\/\*[^]*?\*\/|(?:\/\/|#)[^\n]*/g, '')
  const keys: TsigKey[] = []
  for (const [, name, body] of plain.matchAll(/\bkey\s+"?([^\s"{]+)"?\s*\{([^}]*)\}/g)) {
    const algorithm = /\balgorithm\s+"?([^\s";]+)"?\s*;/.exec(body!)?.[1]
    const secret = /\bsecret\s+"?([^\s";]+)"?\s*;/.exec(body!)?.[1]
    if (algorithm === undefined || secret === undefined)
      throw new DnsError('BAD_KEY', `${file}: key ${name} lacks algorithm or secret`)
    keys.push(new TsigKey(name!, algorithm, secret))
  }
  if (keys.length === 0) throw new DnsError('BAD_KEY', `${file} holds no key; tsig-keygen NAME writes one`)
  return keys
}
