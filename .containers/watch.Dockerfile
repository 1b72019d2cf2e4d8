# The read-only console for a shared screen. Built from the project's folder:
#   docker build -f .containers/watch.Dockerfile -t tpudash-watch .
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY pyproject.toml README.md ./
COPY themes themes
COPY tpudash tpudash
COPY trainer trainer
RUN python -m venv /opt/tpudash
RUN /opt/tpudash/bin/pip install --no-cache-dir .

FROM python:${PYTHON}-slim
RUN useradd --create-home --uid 10001 tpudash
COPY --from=build /opt/tpudash /opt/tpudash
ENV PATH=/opt/tpudash/bin:$PATH TERM=xterm-256color COLORTERM=truecolor
USER 10001
WORKDIR /home/tpudash
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=300s --timeout=10s --start-period=30s \
    CMD ["tpudash", "config", "check"]
ENTRYPOINT ["tpudash"]
CMD ["watch"]
