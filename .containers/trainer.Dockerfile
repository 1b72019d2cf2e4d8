# The trainer, with the framework that EXTRAS names. Built from the project's folder:
#   docker build -f .containers/trainer.Dockerfile -t tpudash-trainer .
#   docker build -f .containers/trainer.Dockerfile --build-arg EXTRAS=trainer-jax -t tpudash-trainer-jax .
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
ARG EXTRAS=trainer
WORKDIR /src
COPY pyproject.toml README.md ./
COPY themes themes
COPY tpudash tpudash
COPY trainer trainer
RUN python -m venv /opt/tpudash
RUN /opt/tpudash/bin/pip install --no-cache-dir ".[${EXTRAS}]"

FROM python:${PYTHON}-slim
RUN useradd --create-home --uid 10001 tpudash
COPY --from=build /opt/tpudash /opt/tpudash
ENV PATH=/opt/tpudash/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
WORKDIR /home/tpudash
# The trainer is process 1 and takes SIGTERM itself: it saves, then ends with 75.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=60s --timeout=10s --start-period=300s --retries=3 \
    CMD ["python", "-m", "trainer.health"]
ENTRYPOINT ["python", "-m"]
CMD ["trainer", "--help"]
