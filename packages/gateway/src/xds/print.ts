/** Resources in a readable form: the JSON form of protobuf, as in a configuration file of Envoy, without private keys. */
import type { ListenAddresses } from '../ir/listen-addresses.ts'
import type { Ir } from '../ir/model.ts'
import { toJson } from './protobuf.ts'
import { MESSAGE_OF, RESOURCE_TYPES, type ResourceType } from './resource.ts'
import { translate } from './resources.ts'

const SECTIONS: Readonly<Record<Exclude<ResourceType, 'endpoints'>, string>> = {
  cluster: 'clusters',
  secret: 'secrets',
  listener: 'listeners',
  route: 'routes',
}

export function printResources(ir: Ir, addresses: ListenAddresses): Record<string, object[]> {
  const { resources } = translate(withoutKeys(ir), addresses)
  return Object.fromEntries(
    RESOURCE_TYPES.flatMap((type) => {
      if (type === 'endpoints') return []
      const list = [...resources[type].values()].map(({ any }) =>
        toJson(MESSAGE_OF[type], any.value ?? new Uint8Array()),
      )
      return [[SECTIONS[type], list as object[]]]
    }),
  )
}

/** Private keys are not for terminals and pull requests. */
function withoutKeys(ir: Ir): Ir {
  return { ...ir, certificates: ir.certificates.map((certificate) => ({ ...certificate, key: '[redacted]' })) }
}
