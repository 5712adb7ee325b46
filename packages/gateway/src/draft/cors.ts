/** CORS policies of HTTPProxy and HTTPRoute: what both check. */
import type { Cors } from '../ir/model.ts'
import { TOKEN } from './headers.ts'

/** Why the lists of a policy cannot be sent as header fields: methods and names of headers are tokens (RFC 9110 §5.6.2). */
export function corsFault({ allowMethods, allowHeaders, exposeHeaders }: Cors): string | undefined {
  const bad = [...allowMethods, ...allowHeaders, ...exposeHeaders].find((text) => !TOKEN.test(text))
  return bad === undefined ? undefined : `${JSON.stringify(bad)} is neither a method nor the name of a header`
}
