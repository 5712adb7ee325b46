/** Types of the named groups, Kubernetes 1.36. Format: ../table.ts. */
export const GROUP_TYPES = `
admissionregistration.v1
.MatchCondition name=1s!* expression=2s!*
.MutatingWebhook name=1s!* clientConfig=2<.WebhookClientConfig>!* rules=3[<.RuleWithOperations>@atomic failurePolicy=4s? matchPolicy=9s? namespaceSelector=5<meta.v1.LabelSelector>? objectSelector=11<meta.v1.LabelSelector>? sideEffects=6s?!* timeoutSeconds=7i? admissionReviewVersions=8[s!*@atomic reinvocationPolicy=10s? matchConditions=12[<.MatchCondition>~merge(name)@map(name)
.MutatingWebhookConfiguration metadata=1<meta.v1.ObjectMeta>! webhooks=2[<.MutatingWebhook>~merge(name)@map(name)
.Rule apiGroups=1[s apiVersions=2[s resources=3[s scope=4s?
.RuleWithOperations operations=1[s@atomic ^=2<.Rule>
.ServiceReference namespace=1s!* name=2s!* path=3s? port=4i?
.ValidatingWebhook name=1s!* clientConfig=2<.WebhookClientConfig>!* rules=3[<.RuleWithOperations>@atomic failurePolicy=4s? matchPolicy=9s? namespaceSelector=5<meta.v1.LabelSelector>? objectSelector=10<meta.v1.LabelSelector>? sideEffects=6s?!* timeoutSeconds=7i? admissionReviewVersions=8[s!*@atomic matchConditions=11[<.MatchCondition>~merge(name)@map(name)
.ValidatingWebhookConfiguration metadata=1<meta.v1.ObjectMeta>! webhooks=2[<.ValidatingWebhook>~merge(name)@map(name)
.WebhookClientConfig url=3s? service=1<.ServiceReference>? caBundle=2y
apiextensions.v1
.CustomResourceColumnDefinition name=1s!* type=2s!* format=3s description=4s priority=5i jsonPath=6s!*
.CustomResourceConversion strategy=1s!* webhook=2<.WebhookConversion>?
.CustomResourceDefinition metadata=1<meta.v1.ObjectMeta>! spec=2<.CustomResourceDefinitionSpec>!* status=3<.CustomResourceDefinitionStatus>!
.CustomResourceDefinitionCondition type=1s!* status=2s!* lastTransitionTime=3T! reason=4s message=5s observedGeneration=6l
.CustomResourceDefinitionNames plural=1s!* singular=2s shortNames=3[s@atomic kind=4s!* listKind=5s categories=6[s@atomic
.CustomResourceDefinitionSpec group=1s!* names=3<.CustomResourceDefinitionNames>!* scope=4s!* versions=7[<.CustomResourceDefinitionVersion>!*@atomic conversion=9<.CustomResourceConversion>? preserveUnknownFields=10b
.CustomResourceDefinitionStatus conditions=1[<.CustomResourceDefinitionCondition>!@map(type) acceptedNames=2<.CustomResourceDefinitionNames>! storedVersions=3[s!@atomic observedGeneration=4l
.CustomResourceDefinitionVersion name=1s!* served=2b!*:false storage=3b!*:false deprecated=7b deprecationWarning=8s? schema=4<.CustomResourceValidation>? subresources=5<.CustomResourceSubresources>? additionalPrinterColumns=6[<.CustomResourceColumnDefinition>@atomic selectableFields=9[<.SelectableField>@atomic
.CustomResourceSubresourceScale specReplicasPath=1s!* statusReplicasPath=2s!* labelSelectorPath=3s?
.CustomResourceSubresourceStatus 
.CustomResourceSubresources status=1<.CustomResourceSubresourceStatus>? scale=2<.CustomResourceSubresourceScale>?
.CustomResourceValidation openAPIV3Schema=1<.JSONSchemaProps>?
.ExternalDocumentation description=1s url=2s
.JSONSchemaProps id=1s $schema=2s $ref=3s? description=4s type=5s format=6s title=7s default=8R? maximum=9d? exclusiveMaximum=10b minimum=11d? exclusiveMinimum=12b maxLength=13l? minLength=14l? pattern=15s maxItems=16l? minItems=17l? uniqueItems=18b multipleOf=19d? enum=20[R@atomic maxProperties=21l? minProperties=22l? required=23[s@atomic items=24A? allOf=25[<.JSONSchemaProps>@atomic oneOf=26[<.JSONSchemaProps>@atomic anyOf=27[<.JSONSchemaProps>@atomic not=28<.JSONSchemaProps>? properties=29{<.JSONSchemaProps> additionalProperties=30B? patternProperties=31{<.JSONSchemaProps> dependencies=32{S additionalItems=33B? definitions=34{<.JSONSchemaProps> externalDocs=35<.ExternalDocumentation>? example=36R? nullable=37b x-kubernetes-preserve-unknown-fields=38b? x-kubernetes-embedded-resource=39b x-kubernetes-int-or-string=40b x-kubernetes-list-map-keys=41[s@atomic x-kubernetes-list-type=42s? x-kubernetes-map-type=43s? x-kubernetes-validations=44[<.ValidationRule>~merge(rule)@map(rule)
.SelectableField jsonPath=1s!*
.ServiceReference namespace=1s!* name=2s!* path=3s? port=4i?
.ValidationRule rule=1s!* message=2s messageExpression=3s reason=4s? fieldPath=5s optionalOldSelf=6b?
.WebhookClientConfig url=3s? service=1<.ServiceReference>? caBundle=2y
.WebhookConversion clientConfig=2<.WebhookClientConfig>? conversionReviewVersions=3[s!*@atomic
apps.v1
.ControllerRevision metadata=1<meta.v1.ObjectMeta>! data=2R! revision=3l!*
.DaemonSet metadata=1<meta.v1.ObjectMeta>! spec=2<.DaemonSetSpec>! status=3<.DaemonSetStatus>!
.DaemonSetCondition type=1s!* status=2s!* lastTransitionTime=3T! reason=4s message=5s
.DaemonSetSpec selector=1<meta.v1.LabelSelector>?!* template=2<core.v1.PodTemplateSpec>!* updateStrategy=3<.DaemonSetUpdateStrategy>! minReadySeconds=4i revisionHistoryLimit=6i?
.DaemonSetStatus currentNumberScheduled=1i!* numberMisscheduled=2i!* desiredNumberScheduled=3i!* numberReady=4i!* observedGeneration=5l updatedNumberScheduled=6i numberAvailable=7i numberUnavailable=8i collisionCount=9i? conditions=10[<.DaemonSetCondition>~merge(type)@map(type)
.DaemonSetUpdateStrategy type=1s rollingUpdate=2<.RollingUpdateDaemonSet>?
.Deployment metadata=1<meta.v1.ObjectMeta>! spec=2<.DeploymentSpec>! status=3<.DeploymentStatus>!
.DeploymentCondition type=1s!* status=2s!* lastUpdateTime=6T! lastTransitionTime=7T! reason=4s message=5s
.DeploymentSpec replicas=1i? selector=2<meta.v1.LabelSelector>?!* template=3<core.v1.PodTemplateSpec>!* strategy=4<.DeploymentStrategy>!~retainKeys minReadySeconds=5i revisionHistoryLimit=6i? paused=7b progressDeadlineSeconds=9i?
.DeploymentStatus observedGeneration=1l replicas=2i updatedReplicas=3i readyReplicas=7i availableReplicas=4i unavailableReplicas=5i terminatingReplicas=9i? conditions=6[<.DeploymentCondition>~merge(type)@map(type) collisionCount=8i?
.DeploymentStrategy type=1s rollingUpdate=2<.RollingUpdateDeployment>?
.ReplicaSet metadata=1<meta.v1.ObjectMeta>! spec=2<.ReplicaSetSpec>! status=3<.ReplicaSetStatus>!
.ReplicaSetCondition type=1s!* status=2s!* lastTransitionTime=3T! reason=4s message=5s
.ReplicaSetSpec replicas=1i? minReadySeconds=4i selector=2<meta.v1.LabelSelector>?!* template=3<core.v1.PodTemplateSpec>!
.ReplicaSetStatus replicas=1i!* fullyLabeledReplicas=2i readyReplicas=4i availableReplicas=5i terminatingReplicas=7i? observedGeneration=3l conditions=6[<.ReplicaSetCondition>~merge(type)@map(type)
.RollingUpdateDaemonSet maxUnavailable=1I? maxSurge=2I?
.RollingUpdateDeployment maxUnavailable=1I? maxSurge=2I?
.RollingUpdateStatefulSetStrategy partition=1i? maxUnavailable=2I?
.StatefulSet metadata=1<meta.v1.ObjectMeta>! spec=2<.StatefulSetSpec>! status=3<.StatefulSetStatus>!
.StatefulSetCondition type=1s!* status=2s!* lastTransitionTime=3T! reason=4s message=5s
.StatefulSetOrdinals start=1i!
.StatefulSetPersistentVolumeClaimRetentionPolicy whenDeleted=1s whenScaled=2s
.StatefulSetSpec replicas=1i? selector=2<meta.v1.LabelSelector>?!* template=3<core.v1.PodTemplateSpec>!* volumeClaimTemplates=4[<core.v1.PersistentVolumeClaim>@atomic serviceName=5s! podManagementPolicy=6s updateStrategy=7<.StatefulSetUpdateStrategy>! revisionHistoryLimit=8i? minReadySeconds=9i persistentVolumeClaimRetentionPolicy=10<.StatefulSetPersistentVolumeClaimRetentionPolicy>? ordinals=11<.StatefulSetOrdinals>?
.StatefulSetStatus observedGeneration=1l replicas=2i!* readyReplicas=3i currentReplicas=4i updatedReplicas=5i currentRevision=6s updateRevision=7s collisionCount=9i? conditions=10[<.StatefulSetCondition>~merge(type)@map(type) availableReplicas=11i!
.StatefulSetUpdateStrategy type=1s rollingUpdate=2<.RollingUpdateStatefulSetStrategy>?
authentication.v1
.BoundObjectReference kind=1s apiVersion=2s name=3s uid=4s
.SelfSubjectReview metadata=1<meta.v1.ObjectMeta>! status=2<.SelfSubjectReviewStatus>!
.SelfSubjectReviewStatus userInfo=1<.UserInfo>!
.TokenRequest metadata=1<meta.v1.ObjectMeta>! spec=2<.TokenRequestSpec>! status=3<.TokenRequestStatus>!
.TokenRequestSpec audiences=1[s!@atomic expirationSeconds=4l?! boundObjectRef=3<.BoundObjectReference>?!
.TokenRequestStatus token=1s! expirationTimestamp=2T!
.TokenReview metadata=1<meta.v1.ObjectMeta>! spec=2<.TokenReviewSpec>!* status=3<.TokenReviewStatus>!
.TokenReviewSpec token=1s* audiences=2[s@atomic
.TokenReviewStatus authenticated=1b user=2<.UserInfo>! audiences=4[s@atomic error=3s
.UserInfo username=1s uid=2s groups=3[s@atomic extra=4{X
authorization.v1
.FieldSelectorAttributes rawSelector=1s requirements=2[<meta.v1.FieldSelectorRequirement>@atomic
.LabelSelectorAttributes rawSelector=1s requirements=2[<meta.v1.LabelSelectorRequirement>@atomic
.LocalSubjectAccessReview metadata=1<meta.v1.ObjectMeta>! spec=2<.SubjectAccessReviewSpec>!* status=3<.SubjectAccessReviewStatus>!
.NonResourceAttributes path=1s verb=2s
.NonResourceRule verbs=1[s!*@atomic nonResourceURLs=2[s@atomic
.ResourceAttributes namespace=1s verb=2s group=3s version=4s resource=5s subresource=6s name=7s fieldSelector=8<.FieldSelectorAttributes>? labelSelector=9<.LabelSelectorAttributes>?
.ResourceRule verbs=1[s!*@atomic apiGroups=2[s@atomic resources=3[s@atomic resourceNames=4[s@atomic
.SelfSubjectAccessReview metadata=1<meta.v1.ObjectMeta>! spec=2<.SelfSubjectAccessReviewSpec>!* status=3<.SubjectAccessReviewStatus>!
.SelfSubjectAccessReviewSpec resourceAttributes=1<.ResourceAttributes>? nonResourceAttributes=2<.NonResourceAttributes>?
.SelfSubjectRulesReview metadata=1<meta.v1.ObjectMeta>! spec=2<.SelfSubjectRulesReviewSpec>!* status=3<.SubjectRulesReviewStatus>!
.SelfSubjectRulesReviewSpec namespace=1s
.SubjectAccessReview metadata=1<meta.v1.ObjectMeta>! spec=2<.SubjectAccessReviewSpec>!* status=3<.SubjectAccessReviewStatus>!
.SubjectAccessReviewSpec resourceAttributes=1<.ResourceAttributes>? nonResourceAttributes=2<.NonResourceAttributes>? user=3s groups=4[s@atomic extra=5{X uid=6s
.SubjectAccessReviewStatus allowed=1b!*:false denied=4b reason=2s evaluationError=3s
.SubjectRulesReviewStatus resourceRules=1[<.ResourceRule>!*@atomic nonResourceRules=2[<.NonResourceRule>!*@atomic incomplete=3b!*:false evaluationError=4s
autoscaling.v1
.CrossVersionObjectReference@atomic kind=1s!* name=2s!* apiVersion=3s
.HorizontalPodAutoscaler metadata=1<meta.v1.ObjectMeta>! spec=2<.HorizontalPodAutoscalerSpec>!* status=3<.HorizontalPodAutoscalerStatus>!
.HorizontalPodAutoscalerSpec scaleTargetRef=1<.CrossVersionObjectReference>!* minReplicas=2i? maxReplicas=3i!* targetCPUUtilizationPercentage=4i?
.HorizontalPodAutoscalerStatus observedGeneration=1l? lastScaleTime=2T? currentReplicas=3i!* desiredReplicas=4i!* currentCPUUtilizationPercentage=5i?
.Scale metadata=1<meta.v1.ObjectMeta>! spec=2<.ScaleSpec>! status=3<.ScaleStatus>!
.ScaleSpec replicas=1i
.ScaleStatus replicas=1i!* selector=2s
autoscaling.v2
.ContainerResourceMetricSource name=1s!* target=2<.MetricTarget>!* container=3s!*
.ContainerResourceMetricStatus name=1s!* current=2<.MetricValueStatus>!* container=3s!*
.CrossVersionObjectReference kind=1s!* name=2s!* apiVersion=3s
.ExternalMetricSource metric=1<.MetricIdentifier>!* target=2<.MetricTarget>!*
.ExternalMetricStatus metric=1<.MetricIdentifier>!* current=2<.MetricValueStatus>!*
.HPAScalingPolicy type=1s!* value=2i!* periodSeconds=3i!*
.HPAScalingRules stabilizationWindowSeconds=3i? selectPolicy=1s? policies=2[<.HPAScalingPolicy>@atomic tolerance=4Q?
.HorizontalPodAutoscaler metadata=1<meta.v1.ObjectMeta>! spec=2<.HorizontalPodAutoscalerSpec>!* status=3<.HorizontalPodAutoscalerStatus>!
.HorizontalPodAutoscalerBehavior scaleUp=1<.HPAScalingRules>? scaleDown=2<.HPAScalingRules>?
.HorizontalPodAutoscalerCondition type=1s!* status=2s!* lastTransitionTime=3T! reason=4s message=5s
.HorizontalPodAutoscalerSpec scaleTargetRef=1<.CrossVersionObjectReference>!* minReplicas=2i? maxReplicas=3i!* metrics=4[<.MetricSpec>@atomic behavior=5<.HorizontalPodAutoscalerBehavior>?
.HorizontalPodAutoscalerStatus observedGeneration=1l? lastScaleTime=2T? currentReplicas=3i desiredReplicas=4i!* currentMetrics=5[<.MetricStatus>!@atomic conditions=6[<.HorizontalPodAutoscalerCondition>~merge(type)@map(type)
.MetricIdentifier name=1s!* selector=2<meta.v1.LabelSelector>?
.MetricSpec type=1s!* object=2<.ObjectMetricSource>? pods=3<.PodsMetricSource>? resource=4<.ResourceMetricSource>? containerResource=7<.ContainerResourceMetricSource>? external=5<.ExternalMetricSource>?
.MetricStatus type=1s!* object=2<.ObjectMetricStatus>? pods=3<.PodsMetricStatus>? resource=4<.ResourceMetricStatus>? containerResource=7<.ContainerResourceMetricStatus>? external=5<.ExternalMetricStatus>?
.MetricTarget type=1s!* value=2Q? averageValue=3Q? averageUtilization=4i?
.MetricValueStatus value=1Q? averageValue=2Q? averageUtilization=3i?
.ObjectMetricSource describedObject=1<.CrossVersionObjectReference>!* target=2<.MetricTarget>!* metric=3<.MetricIdentifier>!*
.ObjectMetricStatus metric=1<.MetricIdentifier>!* current=2<.MetricValueStatus>!* describedObject=3<.CrossVersionObjectReference>!*
.PodsMetricSource metric=1<.MetricIdentifier>!* target=2<.MetricTarget>!*
.PodsMetricStatus metric=1<.MetricIdentifier>!* current=2<.MetricValueStatus>!*
.ResourceMetricSource name=1s!* target=2<.MetricTarget>!*
.ResourceMetricStatus name=1s!* current=2<.MetricValueStatus>!*
batch.v1
.CronJob metadata=1<meta.v1.ObjectMeta>! spec=2<.CronJobSpec>!* status=3<.CronJobStatus>!
.CronJobSpec schedule=1s!* timeZone=8s? startingDeadlineSeconds=2l? concurrencyPolicy=3s suspend=4b? jobTemplate=5<.JobTemplateSpec>!* successfulJobsHistoryLimit=6i? failedJobsHistoryLimit=7i?
.CronJobStatus active=1[<core.v1.ObjectReference>@atomic lastScheduleTime=4T? lastSuccessfulTime=5T?
.Job metadata=1<meta.v1.ObjectMeta>! spec=2<.JobSpec>! status=3<.JobStatus>!
.JobCondition type=1s!* status=2s!* lastProbeTime=3T! lastTransitionTime=4T! reason=5s message=6s
.JobSpec parallelism=1i? completions=2i? activeDeadlineSeconds=3l? podFailurePolicy=11<.PodFailurePolicy>? successPolicy=16<.SuccessPolicy>? backoffLimit=7i? backoffLimitPerIndex=12i? maxFailedIndexes=13i? selector=4<meta.v1.LabelSelector>? manualSelector=5b? template=6<core.v1.PodTemplateSpec>!* ttlSecondsAfterFinished=8i? completionMode=9s? suspend=10b? podReplacementPolicy=14s? managedBy=15s?
.JobStatus conditions=1[<.JobCondition>~merge(type)@atomic startTime=2T? completionTime=3T? active=4i succeeded=5i failed=6i terminating=11i? completedIndexes=7s failedIndexes=10s? uncountedTerminatedPods=8<.UncountedTerminatedPods>? ready=9i?
.JobTemplateSpec metadata=1<meta.v1.ObjectMeta>! spec=2<.JobSpec>!
.PodFailurePolicy rules=1[<.PodFailurePolicyRule>!*@atomic
.PodFailurePolicyOnExitCodesRequirement containerName=1s? operator=2s!* values=3[i!*@set
.PodFailurePolicyOnPodConditionsPattern type=1s!* status=2s!
.PodFailurePolicyRule action=1s!* onExitCodes=2<.PodFailurePolicyOnExitCodesRequirement>? onPodConditions=3[<.PodFailurePolicyOnPodConditionsPattern>@atomic
.SuccessPolicy rules=1[<.SuccessPolicyRule>!*@atomic
.SuccessPolicyRule succeededIndexes=1s? succeededCount=2i?
.UncountedTerminatedPods succeeded=1[s@set failed=2[s@set
coordination.v1
.Lease metadata=1<meta.v1.ObjectMeta>! spec=2<.LeaseSpec>!
.LeaseSpec holderIdentity=1s? leaseDurationSeconds=2i? acquireTime=3M? renewTime=4M? leaseTransitions=5i? strategy=6s? preferredHolder=7s?
discovery.v1
.Endpoint addresses=1[s!*@set conditions=2<.EndpointConditions>! hostname=3s? targetRef=4<core.v1.ObjectReference>? deprecatedTopology=5{s nodeName=6s? zone=7s? hints=8<.EndpointHints>?
.EndpointConditions ready=1b? serving=2b? terminating=3b?
.EndpointHints forZones=1[<.ForZone>@atomic forNodes=2[<.ForNode>@atomic
.EndpointPort@atomic name=1s? protocol=2s? port=3i? appProtocol=4s?
.EndpointSlice metadata=1<meta.v1.ObjectMeta>! addressType=4s!* endpoints=2[<.Endpoint>!@atomic ports=3[<.EndpointPort>!@atomic
.ForNode name=1s!*
.ForZone name=1s!*
events.v1
.Event metadata=1<meta.v1.ObjectMeta>! eventTime=2M!* series=3<.EventSeries>? reportingController=4s reportingInstance=5s action=6s reason=7s regarding=8<core.v1.ObjectReference>! related=9<core.v1.ObjectReference>? note=10s type=11s deprecatedSource=12<core.v1.EventSource>! deprecatedFirstTimestamp=13T! deprecatedLastTimestamp=14T! deprecatedCount=15i
.EventSeries count=1i!* lastObservedTime=2M!*
networking.v1
.HTTPIngressPath path=1s pathType=3s?!* backend=2<.IngressBackend>!*
.HTTPIngressRuleValue paths=1[<.HTTPIngressPath>!*@atomic
.IPBlock cidr=1s!* except=2[s@atomic
.Ingress metadata=1<meta.v1.ObjectMeta>! spec=2<.IngressSpec>! status=3<.IngressStatus>!
.IngressBackend service=4<.IngressServiceBackend>? resource=3<core.v1.TypedLocalObjectReference>?
.IngressClass metadata=1<meta.v1.ObjectMeta>! spec=2<.IngressClassSpec>!
.IngressClassParametersReference apiGroup=1s? kind=2s!* name=3s!* scope=4s?! namespace=5s?
.IngressClassSpec controller=1s parameters=2<.IngressClassParametersReference>?
.IngressLoadBalancerIngress ip=1s hostname=2s ports=4[<.IngressPortStatus>@atomic
.IngressLoadBalancerStatus ingress=1[<.IngressLoadBalancerIngress>@atomic
.IngressPortStatus port=1i!* protocol=2s!* error=3s?
.IngressRule host=1s ^=2<.IngressRuleValue>
.IngressRuleValue http=1<.HTTPIngressRuleValue>?
.IngressServiceBackend name=1s!* port=2<.ServiceBackendPort>!
.IngressSpec ingressClassName=4s? defaultBackend=1<.IngressBackend>? tls=2[<.IngressTLS>@atomic rules=3[<.IngressRule>@atomic
.IngressStatus loadBalancer=1<.IngressLoadBalancerStatus>!
.IngressTLS hosts=1[s@atomic secretName=2s
.NetworkPolicy metadata=1<meta.v1.ObjectMeta>! spec=2<.NetworkPolicySpec>!
.NetworkPolicyEgressRule ports=1[<.NetworkPolicyPort>@atomic to=2[<.NetworkPolicyPeer>@atomic
.NetworkPolicyIngressRule ports=1[<.NetworkPolicyPort>@atomic from=2[<.NetworkPolicyPeer>@atomic
.NetworkPolicyPeer podSelector=1<meta.v1.LabelSelector>? namespaceSelector=2<meta.v1.LabelSelector>? ipBlock=3<.IPBlock>?
.NetworkPolicyPort protocol=1s? port=2I? endPort=3i?
.NetworkPolicySpec podSelector=1<meta.v1.LabelSelector>! ingress=2[<.NetworkPolicyIngressRule>@atomic egress=3[<.NetworkPolicyEgressRule>@atomic policyTypes=4[s@atomic
.ServiceBackendPort@atomic name=1s number=2i
node.v1
.Overhead podFixed=1{Q
.RuntimeClass metadata=1<meta.v1.ObjectMeta>! handler=2s!* overhead=3<.Overhead>? scheduling=4<.Scheduling>?
.Scheduling nodeSelector=1{s@atomic tolerations=2[<core.v1.Toleration>@atomic
policy.v1
.Eviction metadata=1<meta.v1.ObjectMeta>! deleteOptions=2<meta.v1.DeleteOptions>?
.PodDisruptionBudget metadata=1<meta.v1.ObjectMeta>! spec=2<.PodDisruptionBudgetSpec>! status=3<.PodDisruptionBudgetStatus>!
.PodDisruptionBudgetSpec minAvailable=1I? selector=2<meta.v1.LabelSelector>?~replace maxUnavailable=3I? unhealthyPodEvictionPolicy=4s?
.PodDisruptionBudgetStatus observedGeneration=1l disruptedPods=2{T disruptionsAllowed=3i! currentHealthy=4i! desiredHealthy=5i! expectedPods=6i! conditions=7[<meta.v1.Condition>~merge(type)@map(type)
rbac.v1
.AggregationRule clusterRoleSelectors=1[<meta.v1.LabelSelector>@atomic
.ClusterRole metadata=1<meta.v1.ObjectMeta>! rules=2[<.PolicyRule>!@atomic aggregationRule=3<.AggregationRule>?
.ClusterRoleBinding metadata=1<meta.v1.ObjectMeta>! subjects=2[<.Subject>@atomic roleRef=3<.RoleRef>!*
.PolicyRule verbs=1[s!*@atomic apiGroups=2[s@atomic resources=3[s@atomic resourceNames=4[s@atomic nonResourceURLs=5[s@atomic
.Role metadata=1<meta.v1.ObjectMeta>! rules=2[<.PolicyRule>!@atomic
.RoleBinding metadata=1<meta.v1.ObjectMeta>! subjects=2[<.Subject>@atomic roleRef=3<.RoleRef>!*
.RoleRef@atomic apiGroup=1s! kind=2s!* name=3s!*
.Subject@atomic kind=1s!* apiGroup=2s name=3s!* namespace=4s
scheduling.v1
.PriorityClass metadata=1<meta.v1.ObjectMeta>! value=2i! globalDefault=3b description=4s preemptionPolicy=5s?
storage.v1
.StorageClass metadata=1<meta.v1.ObjectMeta>! provisioner=2s!* parameters=3{s reclaimPolicy=4s? mountOptions=5[s@atomic allowVolumeExpansion=6b? volumeBindingMode=7s? allowedTopologies=8[<core.v1.TopologySelectorTerm>@atomic
`
