/** Commands that the page shows. Names come from tenants: what a shell would read otherwise is quoted. Pure. */
import { printable } from '@seamark/dns'

const PLAIN = /^[A-Za-z0-9][A-Za-z0-9._/:-]*$/

/** One word of a command line. What a terminal would not show as it is, is shown escaped. */
export function shellWord(text: string): string {
  if (PLAIN.test(text)) return text
  return `'${printable(text).replaceAll("'", `'\\''`)}'`
}

export function explainCommand(host: string): string {
  return `seamark explain ${shellWord(host)}`
}
